# SPDX-License-Identifier: GPL-2.0-only
"""A process that puts back what we leave if we are killed, with our whole control group as well.

It waits for the lock of the state, which goes with us however we end, and finds nothing to do if we ended well.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import foliohost
from foliohost.groups import top_groups

_WORDS = """import os, sys
sys.path.insert(0, sys.argv[1])
os.environ["FOLIOLAB_STATE"] = sys.argv[2]
from foliohost.keeper import keep
keep()
"""
_SECONDS = 5.0
"""For a keeper to be there."""
_DETACH = 'for group in $1; do echo 0 >"$group"; done 2>/dev/null; shift; "$@" &'
"""Out of the control group, and no child of ours."""


def start_keeper(directory: Path) -> bool:
    """Have a keeper of the state in that directory, whose lock we hold; returns whether there is one."""
    if _waits(directory):
        return True
    package = Path(foliohost.__file__).parent.parent
    argv = [sys.executable, "-I", "-S", "-c", _WORDS, str(package), str(directory.absolute())]
    unit = ["systemd-run", "--collect", "--quiet", "--property=DefaultDependencies=no", *argv]
    alone = ["/bin/sh", "-c", _DETACH, "sh", top_groups(), *argv]
    ways = [unit, alone] if Path("/run/systemd/system").is_dir() else [alone]
    return any(_run(way) and _comes(directory) for way in ways)


def keep() -> None:
    """Be the keeper."""
    from foliohost.files import state_directory
    from foliohost.state import restore

    directory = state_directory()
    try:
        mine, lock = (os.open(directory / name, os.O_RDWR | os.O_CLOEXEC) for name in ("keeper", "lock"))
    except OSError:  # the directory has gone, or is another one in the file system that we see
        return
    fcntl.flock(mine, fcntl.LOCK_EX)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.close(mine)  # who has the lock and finds this closed needs another keeper
    os.close(lock)
    restore([])


def _run(argv: list[str]) -> bool:
    null = subprocess.DEVNULL
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            argv, cwd="/", stdin=null, stdout=null, stderr=null, start_new_session=True, timeout=_SECONDS, check=False
        )
        return done.returncode == 0
    return False


def _comes(directory: Path) -> bool:
    until = time.monotonic() + _SECONDS
    while not _waits(directory):
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def _waits(directory: Path) -> bool:
    """Whether a keeper is there that waits for the lock which we hold."""
    handle = os.open(directory / "keeper", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(handle)

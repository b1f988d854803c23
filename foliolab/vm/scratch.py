# SPDX-License-Identifier: GPL-2.0-only
"""A directory for the disks of one command, which may be too large for /tmp."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foliolab.files import cache_directory, full_disk_named, locked


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory in the cache that goes with the block.

    What a kill has left of another one goes, too: its owner holds a lock on it for as long as it lives.
    """
    home = _home()
    with full_disk_named(home), locked(home / "lock"):
        _sweep(home)
        place = Path(tempfile.mkdtemp(dir=home))
        handle = _owned(place)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def sweep() -> None:
    home = _home()
    with locked(home / "lock"):
        _sweep(home)


def _home() -> Path:
    return cache_directory().resolve() / "scratch"


def _sweep(home: Path) -> None:
    for left in home.iterdir():
        if left.is_dir() and (handle := _owned(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(handle)


def _owned(directory: Path) -> int | None:
    """A file descriptor that holds the directory's lock, or None if another process has it, or has removed it."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle

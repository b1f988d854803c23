# SPDX-License-Identifier: GPL-2.0-only
"""What other processes do, and waiting for it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from foliolab.files import REPOSITORY


@contextmanager
def started(
    *argv: str, environment: Mapping[str, str] | None = None, output: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """Python with these arguments, in the repository; killed at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, *argv],
        cwd=REPOSITORY,
        env={**os.environ, **(environment or {})},
        stdout=output,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def called(*argv: str, seconds: float, **environment: str) -> subprocess.CompletedProcess[str]:
    """What came of a command in the repository, without input and in so much time."""
    return subprocess.run(
        argv,
        cwd=REPOSITORY,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def wait_until(happened: Callable[[], object], seconds: float = 60) -> bool:
    """Whether it has happened in that time, of which a busy machine may need much and an idle one needs little."""
    until = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def alive(pid: int) -> bool:
    """Also false of one that has ended and that nobody has waited for."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False

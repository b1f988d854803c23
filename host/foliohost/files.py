# SPDX-License-Identifier: GPL-2.0-only
"""Files that are either whole or absent, and locks."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from foliohost.errors import DiskFull

_FULL = (errno.ENOSPC, errno.EDQUOT)


def state_directory() -> Path:
    """What is changed on this machine, for all its administrators: ``$FOLIOLAB_STATE``, else a directory of root's.

    It goes with the boot, as the windows of devices and open files do; ``systemctl soft-reboot`` keeps them all.
    """
    return Path(os.environ.get("FOLIOLAB_STATE") or "/run/foliolab-host")


def open_regular(path: Path, more: int = 0) -> int:
    """A descriptor for reading a regular file, with ``more`` flags; OSError for what is none.

    Whose file it was can have put something else there, and to open a pipe or a device may wait or set it going. The
    time of the last access stays as it is where we may have it so.
    """
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.ENXIO, "no regular file", str(path))
        same, flags = f"/proc/self/fd/{place}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | more
        try:
            return os.open(same, flags | os.O_NOATIME)
        except PermissionError:
            return os.open(same, flags)
    finally:
        os.close(place)


@contextmanager
def full_disk_named(place: Path) -> Iterator[None]:
    """Turn "no space left" into a sentence that names the place."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"No space left on the disk that holds {place}.") from error
        raise


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write ``path`` so that a reader, or a kill at any moment, sees the old or the new content."""
    content = data.encode() if isinstance(data, str) else data
    with full_disk_named(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fchmod(handle, 0o644)  # by its name it may be another file, where others own the directory
                os.fsync(stream.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; ``on_wait`` is called once if somebody else holds it, before waiting."""
    with full_disk_named(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait:
                on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)

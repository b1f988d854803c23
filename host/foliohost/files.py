# SPDX-License-Identifier: GPL-2.0-only
"""Files that are either whole or absent, and locks."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from foliohost.errors import DiskFull

FULL = (errno.ENOSPC, errno.EDQUOT)
_MACHINE = 4026531836
"""The inode of the initial PID namespace, with every kernel (PROC_PID_INIT_INO)."""
_NEW = ".new"
"""The end of the name of what is not whole yet."""
_STALE_SECONDS = 3600
"""After which nobody writes such a file any more."""


def in_container() -> bool:
    """Whether we are in another PID namespace than the initial one; not where the kernel does not tell."""
    with suppress(OSError):
        return Path("/proc/self/ns/pid").stat().st_ino != _MACHINE
    return False


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
        if error.errno in FULL:
            raise DiskFull(f"No space left on the disk that holds {place}.") from error
        raise


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write ``path`` so that a reader, or a kill at any moment, sees the old or the new content.

    Also removes what killed writers have left beside it for an hour.
    """
    content = data.encode() if isinstance(data, str) else data
    with full_disk_named(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        handle, name = tempfile.mkstemp(_NEW, f".{path.name}.", path.parent)
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


def _sweep(path: Path) -> None:
    """Remove what those who were killed have left of a file that they wrote."""
    before = time.time() - _STALE_SECONDS
    unfinished = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}{re.escape(_NEW)}")
    with suppress(OSError), os.scandir(path.parent) as entries:  # to write there, one need not be allowed to look
        for entry in entries:
            if unfinished.fullmatch(entry.name):
                facts = entry.stat(follow_symlinks=False)
                if facts.st_mtime < before and facts.st_uid == os.geteuid():
                    Path(entry).unlink()


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

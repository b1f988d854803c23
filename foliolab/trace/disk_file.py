# SPDX-License-Identifier: GPL-2.0-only
"""Files that can be read from the disk under them: whether a user's is one, and scratch files."""

import errno
import fcntl
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foliolab.errors import DiskFull, UsageError
from foliolab.files import full_disk_named
from foliolab.progress import Reporter

_FIEMAP = 0xC020660B
"""The ioctl of <linux/fiemap.h>, whose structures these are."""
_SYNC = 1
_HEAD = struct.Struct("QQIIII")
_EXTENT = struct.Struct("QQQQQIIII")
_EXTENTS = 512
"""That are asked for at a time."""
_NOT_READ = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x800
"""Of an extent: nowhere yet, compressed or encrypted, not aligned, within metadata, or not written."""
_CHUNK = 1 << 20
"""Bytes."""


def require_on_disk(path: Path, size: int) -> None:
    """UsageError unless a file has so many bytes, all of which are read from a disk if it is read with O_DIRECT."""
    if not path.is_file():
        raise UsageError(f"{path} is no regular file." if path.exists() else f"There is no file {path}.")
    there = path.stat().st_size
    if there < size:
        raise UsageError(f"{path} is too small: it has {there:,} bytes, and {size:,} are read.")
    position = 0
    with _refused(path):
        for start, length, flags in _extents(path, size):
            if start > position or flags & _NOT_READ:
                break
            position = start + length
    if position < size:
        raise UsageError(
            f"{path} has no plain data on the disk at byte {position:,}: there is a hole, or space that was never"
            " written, or it is compressed."
        )


@contextmanager
def _refused(name: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY):
            raise UsageError(
                f"{name} cannot be read past the page cache, or its file system does not tell what is on a disk;"
                " tmpfs and most network file systems are so."
            ) from error
        raise OSError(error.errno, error.strerror, str(name)) from error


def _extents(path: Path, size: int) -> Iterator[tuple[int, int, int]]:
    """Start and length in bytes, and the flags, of each up to there; OSError if the file system does not tell."""
    position = 0
    file = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        while position < size:
            answer = bytearray(_HEAD.size + _EXTENTS * _EXTENT.size)
            _HEAD.pack_into(answer, 0, position, size - position, _SYNC, 0, _EXTENTS, 0)
            fcntl.ioctl(file, _FIEMAP, answer)
            count = _HEAD.unpack_from(answer)[3]
            if not count:
                return
            for place in range(_HEAD.size, _HEAD.size + count * _EXTENT.size, _EXTENT.size):
                start, _, length, _, _, flags, *_ = _EXTENT.unpack_from(answer, place)
                yield start, length, flags
                position = start + length
    finally:
        os.close(file)


@contextmanager
def scratch_file(directory: Path, size: int, report: Reporter) -> Iterator[Path]:
    """A file of random data, which has no name in the directory and is gone after the block, or with us.

    UsageError if there is no such directory, or no disk under it; DiskFull if there is no room.
    """
    if not directory.is_dir():
        raise UsageError(f"There is no directory {directory}.")
    # Others would run out of room while we find out that there is not enough.
    if shutil.disk_usage(directory).free < size:
        raise DiskFull(f"No space left on the disk that holds {directory}: {size >> 20:,} MiB are needed.")
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        path = Path(f"/proc/self/fd/{file.fileno()}")
        with _refused(directory):  # before a file in memory is as large as that
            list(_extents(path, 1))
        with full_disk_named(directory), report.task(f"writing a scratch file of {size >> 20} MiB"):
            os.posix_fallocate(file.fileno(), 0, size)
            for start in range(0, size, _CHUNK):
                file.write(os.urandom(min(_CHUNK, size - start)))
            os.fsync(file.fileno())
        yield path

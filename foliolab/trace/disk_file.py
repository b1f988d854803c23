# SPDX-License-Identifier: GPL-2.0-only
"""Files that can be read from the disk under them: whether a user's is one, and scratch files."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foliohost.extents import plain_extents
from foliolab.errors import DiskFull, UsageError
from foliolab.files import full_disk_named
from foliolab.model.reads import opened
from foliolab.progress import working

_CHUNK_BYTES = 1 << 20


def require_on_disk(path: Path, size: int) -> None:
    """UsageError unless a file has so many bytes, all of which are read from a disk if it is read with O_DIRECT."""
    if not path.is_file():
        raise UsageError(f"{path} is no regular file." if path.exists() else f"There is no file {path}.")
    there = path.stat().st_size
    if there < size:
        raise UsageError(f"{path} is too small: it has {there:,} bytes, and {size:,} are read.")
    _require_plain(path, size, str(path))


def _require_plain(path: Path, size: int, name: str) -> None:
    """``name`` is what users know the file by."""
    position = 0
    with _refused(name):
        for start, end in _extents(path, size):
            if start > position:
                break
            position = end
    if position < size:
        raise UsageError(
            f"{name} has no plain data on the disk at byte {position:,}: there is a hole, or space that was never"
            " written, or it is compressed."
        )


@contextmanager
def _refused(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY):
            raise UsageError(
                f"{name} cannot be read past the page cache, or its file system does not tell what is on a disk;"
                " tmpfs and most network file systems are so."
            ) from error
        raise OSError(error.errno, error.strerror, name) from error


def _extents(path: Path, size: int) -> Iterator[tuple[int, int]]:
    """Start and end of the plain data up to there; OSError if the file system does not tell."""
    with opened(path, os.O_DIRECT) as file:
        yield from plain_extents(file, size)


@contextmanager
def scratch_file(directory: Path, size: int) -> Iterator[Path]:
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
        with full_disk_named(directory), _refused(str(directory)):
            list(_extents(path, 1))  # before a file in memory is as large as that
            with working(f"writing a scratch file of {size >> 20} MiB"):
                _fill(file.fileno(), size)
        _require_plain(path, size, f"A scratch file in {directory}")
        yield path


def _fill(file: int, size: int) -> None:
    """Write random data; what a call leaves is written by the next."""
    os.posix_fallocate(file, 0, size)
    for start in range(0, size, _CHUNK_BYTES):
        rest = os.urandom(min(_CHUNK_BYTES, size - start))
        while rest:
            rest = rest[os.write(file, rest) :]
    os.fsync(file)

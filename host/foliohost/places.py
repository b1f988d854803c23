# SPDX-License-Identifier: GPL-2.0-only
"""Places in files at which a read really reaches the disk: no holes, and no extents that were never written."""

from __future__ import annotations

import errno
import os
import random
import stat
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path

from foliohost.errors import FolioError, NoProbe, NotPermitted
from foliohost.extents import has_map, plain_extents
from foliohost.files import open_regular
from foliohost.processes import PAGE_BYTES

BLOCK_BYTES = 1 << 20
"""The largest read. Each read lies in a block of this size, which is in one extent, so that it is one request."""
LEAST_BYTES = 64 << 20
"""Of data: less would be in the drive's own memory after a moment."""

_MOST_FILES = 16
_WALK_SECONDS = 1.0
_MOST_EXTENTS = 200_000


class Places:
    """Random places in blocks of open files."""

    def __init__(self, runs: Sequence[tuple[int, int, int]], seed: int) -> None:
        """``runs`` have a descriptor, an offset in bytes, and how many blocks follow there."""
        self._runs = runs
        self._ends: list[int] = []
        for _, _, blocks in runs:
            self._ends.append(blocks + (self._ends[-1] if self._ends else 0))
        self._numbers = random.Random(seed)

    @property
    def data_bytes(self) -> int:
        """Of all blocks."""
        return self._ends[-1] * BLOCK_BYTES

    @property
    def size_bytes(self) -> int:
        """Of the files in all."""
        return sum(os.fstat(handle).st_size for handle in {handle for handle, _, _ in self._runs})

    def pick(self, size: int) -> tuple[int, int]:
        """A descriptor, and an offset that is a multiple of ``size`` from the beginning of a block; both in bytes."""
        number = self._numbers.randrange(self._ends[-1])
        run = bisect_right(self._ends, number)
        handle, offset, blocks = self._runs[run]
        block = number - (self._ends[run] - blocks)
        return handle, offset + block * BLOCK_BYTES + self._numbers.randrange(BLOCK_BYTES // size) * size


def files_of(path: Path) -> list[Path]:
    """The file, or the largest files below a directory, of the same file system.

    The walk ends after a second.
    """
    if not path.is_dir():
        return [path]
    found = [(facts.st_blocks, place) for place, facts in _walk(path)]
    return [place for blocks, place in sorted(found, reverse=True)[:_MOST_FILES] if blocks * 512 >= BLOCK_BYTES]


def _walk(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Regular files of a file system, those of higher directories first.

    Other file systems are not looked into, as that may mount them, nor what may not be looked into.
    """
    until, device = time.monotonic() + _WALK_SECONDS, directory.stat().st_dev
    waiting = deque([directory])
    while waiting:
        with suppress(OSError), os.scandir(waiting.popleft()) as entries:
            for entry in entries:
                if time.monotonic() > until:
                    return
                facts = entry.stat(follow_symlinks=False)
                if facts.st_dev != device:
                    continue
                if stat.S_ISDIR(facts.st_mode):
                    waiting.append(Path(entry.path))
                elif stat.S_ISREG(facts.st_mode):
                    yield Path(entry.path), facts


@contextmanager
def places_of(path: Path, seed: int) -> Iterator[tuple[Places, list[Path]]]:
    """Places below ``path``, and the files in which they are, which are open for direct reads during the block.

    NoProbe says what is missing; NotPermitted if the file may not be read. Below a directory such files are skipped.
    """
    runs: list[tuple[int, int, int]] = []
    used = []
    with ExitStack() as block:
        for file in files_of(path):
            try:
                handle = _open(file)
                block.callback(os.close, handle)
                found = [(handle, offset, blocks) for offset, blocks in data_blocks(handle)]
            except (FolioError, OSError) as error:
                if path.is_dir():  # others may do: this one may not be read, or has gone since
                    continue
                if isinstance(error, OSError):
                    raise OSError(error.errno, error.strerror, str(file)) from error
                raise
            runs += found
            used += [file] if found else []
        _require_data(path, sum(blocks for _, _, blocks in runs) * BLOCK_BYTES)
        yield Places(runs, seed), used


def _open(file: Path) -> int:
    """For direct reads."""
    try:
        return open_regular(file, os.O_DIRECT)
    except PermissionError as error:
        raise NotPermitted(f"{file} may not be read.") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise NoProbe(f"The file system that holds {file} has no direct reads (O_DIRECT).") from error


def _require_data(path: Path, found: int) -> None:
    if found >= LEAST_BYTES:
        return
    least = f"at least {LEAST_BYTES >> 20} MiB are needed"
    if path.is_dir():
        there = f"{found >> 20} MiB of data that can be read past the page cache"
        raise NoProbe(f"The largest files below {path} have {there}; {least}.")
    size = path.stat().st_size
    if size < LEAST_BYTES:
        raise NoProbe(f"{path} is too small, with {size >> 20} MiB; {least}.")
    raise NoProbe(
        f"Only {found >> 20} of {size >> 20} MiB of {path} are data in pieces of 1 MiB, and {least}: "
        "the rest is holes, compressed, in smaller pieces, or was never written."
    )


def data_blocks(handle: int) -> list[tuple[int, int]]:
    """The offset and number of blocks of each extent that holds data and is that large; offsets are in bytes."""
    found = []
    size = os.fstat(handle).st_size
    extents = plain_extents(handle, size) if has_map(handle) else _between_holes(handle, size)
    for start, end in islice(extents, _MOST_EXTENTS):
        aligned = -(-start // PAGE_BYTES) * PAGE_BYTES
        if (blocks := (min(end, size) - aligned) // BLOCK_BYTES) > 0:
            found.append((aligned, blocks))
    return found


def _between_holes(handle: int, size: int) -> Iterator[tuple[int, int]]:
    """Where data begins and ends, of a file system that has no map."""
    end = 0
    while end < size:
        try:
            start = os.lseek(handle, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # no data from there on
                return
            raise
        end = os.lseek(handle, start, os.SEEK_HOLE)
        yield start, end

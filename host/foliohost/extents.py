# SPDX-License-Identifier: GPL-2.0-only
"""Which parts of an open file are plain data on a disk, as the file system's map says (FIEMAP)."""

from __future__ import annotations

import fcntl
import struct
from collections.abc import Iterator

_FIEMAP = 0xC020660B
"""The ioctl of <linux/fiemap.h>, whose structures these are."""
_SYNC = 1
_HEAD = struct.Struct("=QQLLLL")
_EXTENT = struct.Struct("=QQQQQLLLL")
_EXTENTS = 512
"""Asked for by each call."""
_NOT_PLAIN = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x400 | 0x800
"""Of an extent: no place yet (unknown, delalloc), encoded, not aligned, within other data (inline, tail), unwritten."""


def has_map(handle: int) -> bool:
    """Whether the file system has a map of this file."""
    try:
        _extents(handle, 0, 1, 0)
    except OSError:
        return False
    return True


def plain_extents(handle: int, size: int) -> Iterator[tuple[int, int]]:
    """Where each extent of plain data begins and ends, in bytes, up to ``size``; the last one may end behind it.

    Dirty pages are written first, once. OSError if the file system has no map.
    """
    position, how = 0, _SYNC
    while position < size and (found := _extents(handle, position, size, how)):
        how = 0
        for start, length, flags in found:
            position = start + length
            if not flags & _NOT_PLAIN:
                yield start, position


def _extents(handle: int, start: int, end: int, how: int) -> list[tuple[int, int, int]]:
    """Start, length and flags of the first extents between these two offsets; ``how`` is nothing or _SYNC."""
    answer = bytearray(_HEAD.pack(start, end - start, how, 0, _EXTENTS, 0)) + bytes(_EXTENTS * _EXTENT.size)
    fcntl.ioctl(handle, _FIEMAP, answer)
    count = _HEAD.unpack_from(answer)[3]
    extents = (_EXTENT.unpack_from(answer, _HEAD.size + number * _EXTENT.size) for number in range(count))
    return [(extent[0], extent[2], extent[5]) for extent in extents]

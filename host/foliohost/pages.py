# SPDX-License-Identifier: GPL-2.0-only
"""Which pages of a file a process has mapped, and which are cached, as sets of bits.

A set of pages is an int: bit N is page N of the file. So what came in between two looks is ``now & ~before``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from foliohost.bits import count_ones, pack
from foliohost.libc import mapping, residency
from foliohost.processes import PAGE_BYTES, Mapping

AROUND_PAGES = max(1, (64 << 10) // PAGE_BYTES)
"""Pages that a fault maps at most, of those cached around it, in an aligned block (fault_around_bytes)."""
MOST_BYTES = 64 << 30
"""Of a file whose cached pages are worth asking for: some 3 s."""

_ENTRY = 8
_PIECE_PAGES = 1 << 20
# Bits 63 and 61 of an entry of pagemap: present, and a page of a file and no private copy of one.
_PRESENT = bytes((byte & 0xA0) == 0xA0 for byte in range(256))
_RESIDENT = bytes(byte & 1 for byte in range(256))


def blocks(pages: int, skew: int = 0, around: int = AROUND_PAGES) -> int:
    """How many aligned blocks have any of these pages; ``skew`` pages come before the file's first.

    A block has ``around`` pages, which is a power of two up to 16.
    """
    fold = pages << skew
    step = 1
    while step < around:
        fold |= fold >> step
        step *= 2
    firsts = sum(1 << bit for bit in range(0, 16, around)).to_bytes(2, "little")
    mask = int.from_bytes(firsts * (fold.bit_length() // 16 + 1), "little")
    return count_ones(fold & mask)


def mapped(pid: int, pieces: Iterable[Mapping]) -> int:
    """The pages of a file that these mappings of it have in the page tables; OSError if that cannot be read."""
    found = 0
    with Path(f"/proc/{pid}/pagemap").open("rb", buffering=0) as table:
        for piece in pieces:
            first, end = piece.start // PAGE_BYTES, piece.end // PAGE_BYTES
            page = piece.offset // PAGE_BYTES
            while first < end:
                entries = os.pread(table.fileno(), min(_PIECE_PAGES, end - first) * _ENTRY, first * _ENTRY)
                if not entries:
                    break
                found |= pack(entries[_ENTRY - 1 :: _ENTRY].translate(_PRESENT)) << page
                first += len(entries) // _ENTRY
                page += len(entries) // _ENTRY
    return found


def cached(path: Path) -> int | None:
    """The pages of a file that are in the page cache; None if we may not know that (mincore), or it is too large.

    The kernel tells it to the file's owner, to root, and to whoever may write it.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        facts = os.fstat(handle)
        if facts.st_size > MOST_BYTES or not (os.geteuid() in (0, facts.st_uid) or os.access(path, os.W_OK)):
            return None
        return _resident(handle, facts.st_size) if facts.st_size else 0
    finally:
        os.close(handle)


def _resident(handle: int, size: int) -> int | None:
    with suppress(OSError), mapping(handle, size) as address:
        return pack(residency(address, size).translate(_RESIDENT))
    return None

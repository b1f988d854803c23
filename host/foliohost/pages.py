# SPDX-License-Identifier: GPL-2.0-only
"""Which pages of a file a process has mapped.

The kernel walks page tables for us (PAGEMAP_SCAN, since Linux 6.7), and skips what is not there. Older ones tell of
each page, mapped or not. Where that would take long, some pages of a file stand for all.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import re
import struct
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

from foliohost.bits import count_ones, pack
from foliohost.processes import PAGE_BYTES, Mapping

AROUND_PAGES = max(1, (64 << 10) // PAGE_BYTES)
"""Pages that a fault maps at most, of those cached around it, in an aligned block (fault_around_bytes)."""
MOST_ENTRIES = 1 << 22
"""Entries of page tables that a look at a file reads, where the kernel has no PAGEMAP_SCAN: a tenth of a second."""
MOST_RUNS = 1 << 18
"""Runs of mapped pages that a look at a file takes up, where it has: a third of a second."""

_WINDOW_PAGES = 2048
"""Pages that are looked at or left out together."""
_BLOCK_PAGES = 4096
DISTANT = 7
"""Aligned blocks between two, at which chance alone has both touched, and hardly a stride."""
_ENTRY = 8
_PIECE_PAGES = 1 << 16
# Bits 63 and 61 of an entry of pagemap: present, and a page of a file and no private copy of one.
_PRESENT = bytes((byte & 0xA0) == 0xA0 for byte in range(256))

_SCAN = 0xC0606610
"""The ioctl of <linux/fs.h>, whose structures these are."""
_SCAN_REQUEST = struct.Struct("=12Q")
_SCAN_WALK_END = struct.Struct("=32xQ")
_SCAN_PRESENT_FILE = 1 << 3 | 1 << 2
_SCAN_REGIONS = 1024
_SCAN_BYTES = 4 << 30
"""Of addresses in one call, which keeps others from changing the mappings: 10 ms if all of it is mapped."""


class PageBits:
    """A set of pages of a file: bits, of blocks that have any."""

    def __init__(self, blocks: dict[int, int] | None = None) -> None:
        self._blocks: dict[int, int] = blocks or {}

    def add(self, first: int, bits: int) -> None:
        """Add page ``first`` + N for each bit N."""
        block, at = divmod(first, _BLOCK_PAGES)
        bits <<= at
        while bits:
            if part := bits & _ALL:
                self._blocks[block] = self._blocks.get(block, 0) | part
            bits >>= _BLOCK_PAGES
            block += 1

    def add_run(self, first: int, end: int) -> None:
        """Add the pages from ``first`` to the one before ``end``."""
        while first < end:
            next_end = min(end, (first // _BLOCK_PAGES + 1) * _BLOCK_PAGES)
            self.add(first, (1 << next_end - first) - 1)
            first = next_end

    def update(self, other: PageBits) -> None:
        """Add all of another set."""
        for block, bits in other._blocks.items():
            self._blocks[block] = self._blocks.get(block, 0) | bits

    def since(self, before: PageBits) -> PageBits:
        """Those that ``before`` has not."""
        new = ((block, bits & ~before._blocks.get(block, 0)) for block, bits in self._blocks.items())
        return PageBits({block: bits for block, bits in new if bits})

    def __len__(self) -> int:
        return sum(map(count_ones, self._blocks.values()))

    def __contains__(self, page: int) -> bool:
        return bool(self._blocks.get(page // _BLOCK_PAGES, 0) >> page % _BLOCK_PAGES & 1)

    def arounds(self, skew: int = 0, around: int = AROUND_PAGES) -> int:
        """How many aligned blocks of ``around`` pages have any of these; ``skew`` pages come before the file's first.

        ``around`` is a power of two up to 16.
        """
        return sum(map(count_ones, self._firsts(skew, around)))

    def followers(self, skew: int = 0) -> float:
        """How many of these aligned blocks follow another one, less those that do so by chance."""
        firsts = list(self._firsts(skew, AROUND_PAGES))
        places, near, far = (sum(map(count_ones, _after(firsts, step))) for step in (0, 1, DISTANT))
        return max(0, near - far) * places / (places - far) if far < places else 0.0

    def crowds(self, skew: int = 0) -> tuple[tuple[int, float], ...]:
        """How many of these aligned blocks are where touches at random would have met each block so often on average.

        By neighbourhoods of 256 blocks: of the blocks around one of these, the part that are none of these tells it.
        Where none is missing, half a one is taken to be.
        """
        found: dict[float, int] = {}
        for bits in self._firsts(skew, AROUND_PAGES):
            behind = count_ones(bits >> DISTANT * AROUND_PAGES)
            missing = behind - count_ones(bits & bits << DISTANT * AROUND_PAGES & _ALL)
            met = round(math.log(behind / max(missing, 0.5)), 1) if behind else 0.0
            found[met] = found.get(met, 0) + count_ones(bits)
        return tuple((blocks, max(0.0, met)) for met, blocks in sorted(found.items()))

    def _firsts(self, skew: int, around: int) -> Iterator[int]:
        """The first bit of each such block that has any of these."""
        moved = self
        if skew:
            moved = PageBits()
            for block, bits in self._blocks.items():
                moved.add(block * _BLOCK_PAGES + skew, bits)
        return (_first_bits(bits, around) for bits in moved._blocks.values())


_ALL = (1 << _BLOCK_PAGES) - 1


def _after(firsts: Iterable[int], step: int) -> Iterator[int]:
    """Those that have another one so many aligned blocks before them."""
    return (bits & bits << step * AROUND_PAGES for bits in firsts)


def _first_bits(bits: int, around: int) -> int:
    step = 1
    while step < around:
        bits |= bits >> step
        step *= 2
    firsts = sum(1 << bit for bit in range(0, 16, around)).to_bytes(2, "little")
    return bits & int.from_bytes(firsts * (_BLOCK_PAGES // 16), "little")


def one_in(pid: int, pieces: Iterable[Mapping]) -> int:
    """Of how many pages one has to stand for all, so that a look at these mappings is short: a power of two."""
    pages = sum(piece.end - piece.start for piece in pieces) // PAGE_BYTES
    found, most = (min(pages, _resident_pages(pid)), MOST_RUNS) if _scans(pid) else (pages, MOST_ENTRIES)
    return 1 << max(0, -(-found // most) - 1).bit_length()


def _resident_pages(pid: int) -> int:
    """Pages of files that a process has mapped in all, which the kernel keeps count of."""
    status = Path(f"/proc/{pid}/status").read_bytes()
    found = re.findall(rb"^Rss(?:File|Shmem):\s*(\d+) kB$", status, re.MULTILINE)
    return sum(map(int, found)) * 1024 // PAGE_BYTES


def mapped(pid: int, pieces: Iterable[Mapping], sparing: int = 1) -> PageBits:
    """The pages of a file that these mappings of it have in the page tables; OSError if that cannot be read.

    Of the file's windows of 8 MiB (with pages of 4 KiB), one in ``sparing`` is looked at, always the same ones.
    """
    found = PageBits()
    table = _open(pid)
    try:
        look = _add_scanned if _scans(pid) else _add_read
        for piece in pieces:
            page = piece.offset // PAGE_BYTES
            for first, end in _windows(page, page + (piece.end - piece.start) // PAGE_BYTES, sparing):
                look(table, piece.start // PAGE_BYTES + first - page, first, end - first, found)
    finally:
        os.close(table)
    return found


def _open(pid: int) -> int:
    """A descriptor of a process's page tables; OSError if it has ended, or may not be asked.

    Linux 6.7 to 6.15 opens those of a process that has ended as well, and a scan of them would crash it. To read them
    gives nothing.
    """
    table = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not os.pread(table, _ENTRY, 0):
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    except BaseException:
        os.close(table)
        raise
    return table


def _windows(first: int, end: int, sparing: int) -> Iterator[tuple[int, int]]:
    """Which of these pages of a file are looked at: those of windows whose scattered numbers are a multiple."""
    if sparing == 1:
        yield first, end
        return
    for window in range(first // _WINDOW_PAGES, -(-end // _WINDOW_PAGES)):
        if not (window * 0x9E3779B1 >> 8 & 0xFFFFFF) % sparing:
            yield max(first, window * _WINDOW_PAGES), min(end, (window + 1) * _WINDOW_PAGES)


def _scans(pid: int) -> bool:
    """Whether the kernel can scan page tables."""
    if not _known:
        try:
            handle = _open(pid)
        except OSError:
            return False  # this process has ended; the next one tells
        try:
            next(_regions(handle, 0, PAGE_BYTES), None)
            _known.append(True)
        except OSError as error:
            if error.errno == errno.ESRCH:
                return False
            _known.append(False)
        finally:
            os.close(handle)
    return _known[0]


_known: list[bool] = []
"""Whether PAGEMAP_SCAN works here, once that was tried."""


def _add_scanned(table: int, address: int, page: int, pages: int, found: PageBits) -> None:
    """Add what is mapped from an address on, which is given in pages, of a piece that begins at a page of a file."""
    for start, end in _regions(table, address * PAGE_BYTES, (address + pages) * PAGE_BYTES):
        found.add_run(start // PAGE_BYTES - address + page, end // PAGE_BYTES - address + page)


def _regions(table: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """First and last address of each run of pages of files that is mapped."""
    regions = array("Q", bytes(24 * _SCAN_REGIONS))
    place = regions.buffer_info()[0]
    while start < end:
        call_end = min(end, start + _SCAN_BYTES)
        request = bytearray(
            _SCAN_REQUEST.pack(
                *(_SCAN_REQUEST.size, 0, start, call_end, 0, place, _SCAN_REGIONS, 0),
                *(0, _SCAN_PRESENT_FILE, 0, _SCAN_PRESENT_FILE),
            )
        )
        number = fcntl.ioctl(table, _SCAN, request)
        (start,) = _SCAN_WALK_END.unpack_from(request)
        for at in range(0, 3 * number, 3):
            yield regions[at], regions[at + 1]


def _add_read(table: int, address: int, page: int, pages: int, found: PageBits) -> None:
    """The same of a kernel that cannot scan."""
    end = address + pages
    while address < end:
        entries = os.pread(table, min(_PIECE_PAGES, end - address) * _ENTRY, address * _ENTRY)
        if not entries:
            break
        flags = entries[_ENTRY - 1 :: _ENTRY].translate(_PRESENT)
        if 1 in flags:
            found.add(page, pack(flags))
        address += len(flags)
        page += len(flags)

# SPDX-License-Identifier: GPL-2.0-only
"""In which folios processes have program text mapped, by physical addresses and the kernel's flags of pages."""

from __future__ import annotations

import os
import struct
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from foliohost.errors import FolioError, NotPermitted, UsageError
from foliohost.processes import PAGE_BYTES, parse_maps

MOST_PAGES = (256 << 20) // PAGE_BYTES
"""Of a mapping's text that is looked at: half a second of Python, and more than programs mostly have."""

_FLAGS = Path("/proc/kpageflags")
_ENTRY = struct.Struct("=Q").size
# Of an entry of /proc/PID/pagemap.
_PFN = (1 << 55) - 1
_PRESENT_FILE = 1 << 63 | 1 << 61
# Of an entry of /proc/kpageflags.
_HEAD, _TAIL, _HUGETLB, _LARGE = 1 << 15, 1 << 16, 1 << 17, 1 << 22
_LINE = 512
"""Flags that are read at a time: those of 2 MiB with pages of 4 KiB."""
_LINES = 1024
"""That are kept, in 4 MiB of memory."""

_Page = tuple[int, int]
"""Of a mapped page, its address and its place in memory, both in pages."""


@dataclass(frozen=True)
class TextFolios:
    """Bytes of mapped text; what two processes map counts twice."""

    mapped_bytes: int
    by_size_kb: dict[int, int]
    """By size of folio, of those that are mapped as a whole; single pages are the smallest."""
    partial_bytes: int
    """Of larger folios of which not all is mapped, or not in order."""


def text_folios(pids: Iterable[int]) -> TextFolios:
    """In which folios those processes have text mapped that are still there.

    FolioError says why that cannot be told: not root, a kernel without the flags, no process left.
    """
    there = [pid for pid in pids if Path(f"/proc/{pid}/exe").exists()]
    try:
        flags = os.open(_FLAGS, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        raise NotPermitted("Only root sees in which folios memory is.") from None
    except FileNotFoundError:
        raise FolioError("This kernel has no /proc/kpageflags (CONFIG_PROC_PAGE_MONITOR).") from None
    try:
        if not there:
            raise UsageError("The program has ended before that could be seen.")
        found = _Sum(flags)
        for pid in there:
            found.add_process(pid)
        return found.folios()
    finally:
        os.close(flags)


class _Sum:
    """What the mappings that were added have mapped. Sizes are in pages."""

    def __init__(self, flags: int) -> None:
        self._flags = flags
        self._lines: dict[int, array[int]] = {}
        self._whole: Counter[int] = Counter()
        """By size of folio."""
        self._single = 0
        self._partial = 0

    def folios(self) -> TextFolios:
        sizes = {1: self._single, **self._whole}
        pages = sum(sizes.values()) + self._partial
        by_size = {size * PAGE_BYTES >> 10: sizes[size] * PAGE_BYTES for size in sorted(sizes) if sizes[size]}
        return TextFolios(pages * PAGE_BYTES, by_size, self._partial * PAGE_BYTES)

    def add_process(self, pid: int) -> None:
        """Add the text of a process; one that ends meanwhile has none from then on."""
        self._lines.clear()  # memory of the process before may have become something else
        try:
            text = Path(f"/proc/{pid}/maps").read_bytes().decode(errors="surrogateescape")
            table = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            raise NotPermitted("Only root sees in which folios memory is.") from None
        except OSError:
            return
        try:
            for mapping in parse_maps(text, deleted=True):
                if mapping.text:
                    self._add(_mapped(table, mapping.start // PAGE_BYTES, mapping.end // PAGE_BYTES))
        finally:
            os.close(table)

    def _add(self, pages: Iterable[_Page]) -> None:
        """Add the pages of a mapping, in the order of their addresses."""
        run: list[_Page] = []
        for address, place in pages:
            flags = self._flags_of(place)
            if flags & _HUGETLB:
                continue
            follows = run and (address, place) == (run[-1][0] + 1, run[-1][1] + 1)
            if not flags & _LARGE:
                self._single += 1
                continue
            if flags & _HEAD or not follows:
                self._end(run)
                run = []
            run.append((address, place))
        self._end(run)

    def _end(self, run: list[_Page]) -> None:
        """Add pages of one folio that are mapped in order: all of it, if they begin and end where it does."""
        if not run:
            return
        whole = self._flags_of(run[0][1]) & _HEAD and not self._flags_of(run[-1][1] + 1) & _TAIL
        if whole:
            self._whole[len(run)] += len(run)
        else:
            self._partial += len(run)

    def _flags_of(self, place: int) -> int:
        """Those of a page of memory; what is beyond its end has none."""
        line, at = divmod(place, _LINE)
        if line not in self._lines:
            if len(self._lines) == _LINES:
                self._lines.clear()
            self._lines[line] = array("Q", os.pread(self._flags, _LINE * _ENTRY, line * _LINE * _ENTRY))
        flags = self._lines[line]
        return flags[at] if at < len(flags) else 0


def _mapped(table: int, first: int, end: int) -> Iterator[_Page]:
    """Pages of files that the page tables have between two addresses, in pages. NotPermitted if we may not see them."""
    pages = min(end - first, MOST_PAGES)
    for number, entry in enumerate(array("Q", os.pread(table, pages * _ENTRY, first * _ENTRY))):
        if entry & _PRESENT_FILE == _PRESENT_FILE:
            if not entry & _PFN:
                raise NotPermitted("Only root sees in which folios memory is.")
            yield first + number, entry & _PFN

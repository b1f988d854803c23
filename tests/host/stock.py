# SPDX-License-Identifier: GPL-2.0-only
"""What a stock kernel, of Linux 6.16 or later, reads and maps of a file for touches, while memory holds everything."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from foliohost.runs import RunCounts

AROUND = 16
"""Pages that a fault maps."""


@dataclass
class Stock:
    """A file that one program maps. ``told`` is given the faults, as tracepoints tell them."""

    window: int
    """Pages; 1 is what the hint for random access reads."""
    told: RunCounts = field(default_factory=RunCounts)
    waits: int = 0
    cached: set[int] = field(default_factory=set)
    mapped: set[int] = field(default_factory=set)
    _marks: set[int] = field(default_factory=set)
    _next: tuple[int, int] = -1, -1
    """The mark at which the latest window goes on, and where it ends."""

    def touch(self, pages: Iterable[int]) -> "Stock":
        for page in pages:
            if page not in self.mapped:
                self._fault(page)
        return self

    def _fault(self, page: int) -> None:
        if self._map_around(page):
            return
        self.told.miss(page)
        if page not in self.cached:
            self.waits += 1
            start = max(0, page - self.window // 2)
            self._read(start, start + self.window, start + self.window - self.window // 4)
        elif page in self._marks:
            self._marks.remove(page)
            self._read_ahead(page)
        self.mapped.add(page)
        self._map_around(page)

    def _map_around(self, page: int) -> bool:
        first = page // AROUND * AROUND
        found = (self.cached & set(range(first, first + AROUND))) - self._marks
        if self.window > 1 and found:
            self.mapped |= found
            self.told.map(first, first + AROUND - 1)
        return page in self.mapped

    def _read_ahead(self, page: int) -> None:
        mark, start = self._next
        if page != mark:
            start = next((each for each in range(page + 1, page + self.window + 1) if each not in self.cached), -1)
        if start > 0:
            boundary = min(4, self.window)
            self._read(start, max((start + self.window) // boundary * boundary, start + 1), start)

    def _read(self, start: int, end: int, mark: int) -> None:
        if mark not in self.cached and self.window > 1:
            self._marks.add(mark)
        self.cached |= set(range(start, end))
        self._next = mark, end

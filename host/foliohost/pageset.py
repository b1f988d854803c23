# SPDX-License-Identifier: GPL-2.0-only
"""Sets of pages of files that are small however many touches they are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from foliohost.bits import count_ones

_BLOCK_PAGES = 1 << 13


class PageSet:
    """Distinct pages: a bit for each page of a block of 32 MiB that has one, however many touches there were.

    So a set takes at most a 25,000th of the files in memory.
    """

    def __init__(self, files: Iterable[int] = (), pages: Iterable[int] = ()) -> None:
        self._blocks: defaultdict[tuple[int, int], int] = defaultdict(int)
        for file, page in zip(files, pages):
            self.add(file, page)

    def add(self, file: int, page: int) -> None:
        self._blocks[file, page // _BLOCK_PAGES] |= 1 << page % _BLOCK_PAGES

    def __len__(self) -> int:
        return sum(map(count_ones, self._blocks.values()))

    def missing(self, other: PageSet) -> int:
        """How many of these pages ``other`` has not."""
        return sum(count_ones(block & ~other._blocks.get(key, 0)) for key, block in self._blocks.items())

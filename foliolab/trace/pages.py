# SPDX-License-Identifier: GPL-2.0-only
"""Sets of pages of files, in memory that the files' sizes bound."""

from collections.abc import Iterable

_BLOCK_PAGES = 1 << 15


class PageSet:
    """Distinct pages: a bit for each page of a block of 128 MiB that has one, however many touches there were.

    So a set takes at most a 32,768th of the files in memory.
    """

    def __init__(self, files: Iterable[int] = (), pages: Iterable[int] = ()) -> None:
        self._blocks: dict[tuple[int, int], bytearray] = {}
        self._size = 0
        for file, page in zip(files, pages, strict=True):
            self.add(file, page)

    def add(self, file: int, page: int) -> None:
        key = file, page // _BLOCK_PAGES
        block = self._blocks.get(key)
        if block is None:
            block = self._blocks[key] = bytearray(_BLOCK_PAGES // 8)
        at, bit = page % _BLOCK_PAGES >> 3, 1 << (page & 7)
        self._size += not block[at] & bit
        block[at] |= bit

    def __len__(self) -> int:
        return self._size

    def missing(self, other: "PageSet") -> int:
        """How many of these pages ``other`` has not."""
        found = 0
        for key, block in self._blocks.items():
            mine = int.from_bytes(block, "little")
            found += (mine & ~int.from_bytes(other._blocks.get(key, b""), "little")).bit_count()
        return found

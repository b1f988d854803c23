# SPDX-License-Identifier: GPL-2.0-only
"""Sets of pages, against Python's own."""

import random
import tracemalloc

from foliohost.pageset import PageSet


def places(seed: int) -> list[tuple[int, int]]:
    numbers = random.Random(seed)
    return [
        (numbers.randrange(3), numbers.choice((numbers.randrange(100), numbers.randrange(1 << 32))))
        for _ in range(3000)
    ]


def test_sets_are_those_of_python() -> None:
    one, other = places(1), places(2)
    mine, theirs = (PageSet(*zip(*each, strict=True)) for each in (one, other))
    assert len(mine) == len(set(one))
    assert mine.missing(theirs) == len(set(one) - set(other))
    assert mine.missing(mine) == 0
    assert len(PageSet((0, 0, 0), (7, 8, 7))) == 2
    assert not len(PageSet())


def test_the_size_of_the_file_bounds_the_memory() -> None:
    """A million touches of 1 GiB: 32 KiB of bits."""
    pages = range(1 << 18)
    tracemalloc.start()
    found = PageSet()
    for _ in range(4):
        for page in pages:
            found.add(0, page)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 1 << 18
    assert size < 64 << 10

# SPDX-License-Identifier: GPL-2.0-only
"""A few pages that are used again and again, in memory that holds them but not what a window would add to each."""

from random import Random
from statistics import geometric_mean

from foliolab.model.library import Machine, replay
from tests.model.price import cost

FILE_PAGES = 1660
"""A program of 6.5 MiB, say."""
WINDOW = 32


def hot_pages(random: Random, memory_pages: int) -> list[int]:
    """A quarter of memory at most, and many of them a few pages from another one."""
    wanted = random.randrange(2, max(3, memory_pages // 4))
    pages: list[int] = []
    while len(pages) < wanted:
        place = random.randrange(FILE_PAGES)
        for _ in range(random.randrange(1, 4)):
            page = place + random.choice((0, 1, -1, 17, -17, 20, -25, 33, -40))
            pages.append(min(max(page, 0), FILE_PAGES - 1))
    return pages


def accesses(random: Random, memory_pages: int) -> list[int]:
    """A cold start, and then one set of pages after the other, in turn or at random."""
    found = [random.randrange(FILE_PAGES) for _ in range(100)]
    for _ in range(12):
        pages = hot_pages(random, memory_pages)
        found += random.choices(pages, k=3000) if random.random() < 0.5 else (pages * 3000)[:3000]
    return found


def test_it_does_not_thrash() -> None:
    """Stock does, for all of it."""
    costs: dict[str, list[float]] = {"adaptive": [], "off": []}
    for seed in range(40):
        random = Random(seed)
        memory_pages = random.choice((64, 96, 128, 200, 300))
        pages = accesses(random, memory_pages)
        alone = cost(replay(Machine("fixed", FILE_PAGES, memory_pages, 1), pages), WINDOW)
        for rules, found in costs.items():
            counts = replay(Machine(rules, FILE_PAGES, memory_pages, WINDOW), pages)
            found.append(cost(counts, WINDOW) / alone)
    for rules, found in costs.items():
        print(f"{rules}: {geometric_mean(found):.2f} times as much as single pages, at worst {max(found):.2f}")  # -rP
    assert geometric_mean(costs["adaptive"]) < 1.2
    assert max(costs["adaptive"]) < 2
    assert geometric_mean(costs["off"]) > 50

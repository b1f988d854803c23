# SPDX-License-Identifier: GPL-2.0-only
"""A set of pages that is used at random and just fits into memory, were it not for a stream beside it."""

from random import Random

from foliolab.model.library import Machine, replay
from tests.model.price import cost

MEMORY_PAGES = 16384
FILE_PAGES = 8 * MEMORY_PAGES
SET_PAGES = 8000
WINDOW = 32


def accesses(seed: int) -> list[int]:
    """As many touches of the set as pages of the stream, which begins behind the set; six times the set."""
    random = Random(seed)
    found: list[int] = []
    for window in range(6 * SET_PAGES // WINDOW):
        start = SET_PAGES + window * WINDOW
        found += range(start, start + WINDOW)
        found += [random.randrange(SET_PAGES) for _ in range(WINDOW)]
    return found


def test_the_set_keeps_its_windows() -> None:
    """Blocks of it are evicted now and then, but stay for so long that nearly all of each is used."""
    for seed in (1, 2, 3):
        pages = accesses(seed)
        adaptive, off = (
            replay(Machine(rules, FILE_PAGES, MEMORY_PAGES, WINDOW), pages) for rules in ("adaptive", "off")
        )
        print(
            f"major faults {off.major_faults} -> {adaptive.major_faults}, "
            f"read {off.pages_read} -> {adaptive.pages_read}"
        )
        assert adaptive.major_faults < 1.05 * off.major_faults
        assert adaptive.pages_read < 1.02 * off.pages_read


def test_large_blocks_prove_nothing() -> None:
    """Where a request costs much, a few blocks are as large as a region, though none of them stays for long."""
    memory_pages, requests = 20000, 256
    file_pages = memory_pages * 11 // 10
    costs = {"adaptive": 0.0, "fixed": 0.0}
    for seed in (1, 2, 3, 4):
        random = Random(seed)
        pages = [int(file_pages * random.random() ** 4) * 7919 % file_pages for _ in range(200_000)]
        for rules, window in (("adaptive", 2048), ("fixed", 1)):
            counts = replay(Machine(rules, file_pages, memory_pages, window, requests), pages)
            costs[rules] += cost(counts, requests)
    print(f"{costs['adaptive'] / costs['fixed']:.3f} times the cost of single pages")
    assert costs["adaptive"] < 0.6 * costs["fixed"]

# SPDX-License-Identifier: GPL-2.0-only
"""More streams than reads are remembered for a file."""

import pytest

from foliolab.model.library import Counts, Machine, Pattern, simulate
from tests.model.price import cost

FILE_PAGES = 131072
WINDOW = 32


def run(rules: str, streams: int, memory_pages: int, passes: int) -> Counts:
    machine = Machine(rules, FILE_PAGES, memory_pages, WINDOW)
    return simulate(machine, Pattern("streams", streams=streams), FILE_PAGES, passes)


@pytest.mark.parametrize(
    ("streams", "memory_pages", "passes"),
    [
        (1, FILE_PAGES // 3, 3),
        (12, FILE_PAGES * 9 // 10, 2),
        (16, FILE_PAGES // 2, 6),
        (64, FILE_PAGES // 2, 6),
    ],
)
def test_nobody_waits_for_most_windows(streams: int, memory_pages: int, passes: int) -> None:
    """Also where all that is ahead was evicted in the pass before."""
    adaptive, off = both(streams, memory_pages, passes)
    assert adaptive.major_faults < passes * FILE_PAGES / WINDOW / 8
    assert adaptive.pages_read < 1.06 * passes * FILE_PAGES
    assert cost(adaptive, WINDOW) < 1.05 * cost(off, WINDOW)


@pytest.mark.parametrize(("streams", "passes"), [(64, 1), (16, 2)])
def test_memory_for_two_windows_of_each(streams: int, passes: int) -> None:
    """That is too little for anybody: windows are evicted before their stream gets there."""
    adaptive, off = both(streams, streams * 2 * WINDOW, passes)
    assert cost(adaptive, WINDOW) < 0.82 * cost(off, WINDOW)


def both(streams: int, memory_pages: int, passes: int) -> tuple[Counts, Counts]:
    adaptive, off = (run(rules, streams, memory_pages, passes) for rules in ("adaptive", "off"))
    print(
        f"major faults {off.major_faults} -> {adaptive.major_faults}, read {off.pages_read} -> {adaptive.pages_read}, "
        f"evicted unused {off.evicted_unused} -> {adaptive.evicted_unused}"
    )
    return adaptive, off

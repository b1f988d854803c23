# SPDX-License-Identifier: GPL-2.0-only
"""A program that goes through a file again and again, and each time needs pages that are a stride apart."""

from collections.abc import Sequence

import pytest

from foliolab.model.library import Counts, Machine, replay
from tests.model.price import cost

FILE_PAGES = 100_000
WINDOW = 32
ROOM = FILE_PAGES * 2 // 3


def run(rules: str, pages: Sequence[int], memory_pages: int, window: int = WINDOW) -> Counts:
    return replay(Machine(rules, FILE_PAGES, memory_pages, window), pages)


@pytest.mark.parametrize("window", [WINDOW, 1024])
@pytest.mark.parametrize(("stride", "times"), [(2, 15.3), (3, 4.4), (5, 1.15), (15, 1.1), (16, 1.1)])
def test_what_fits_is_kept(stride: int, times: float, window: int) -> None:
    """Readahead would fill memory with the pages between; off reads all of the file in each pass."""
    sweep = range(0, FILE_PAGES, stride)
    learnt, later = (run("adaptive", [*sweep] * passes, ROOM, window).pages_read for passes in (16, 24))
    print(f"{learnt / FILE_PAGES:.2f} times the file, {later / FILE_PAGES:.2f} times in the end")
    assert later <= 1.01 * learnt
    assert learnt < times * FILE_PAGES
    assert run("off", [*sweep] * 24, ROOM, window).pages_read > 23.8 * FILE_PAGES


@pytest.mark.parametrize("stride", [1, 2, 3, 5, 15, 16])
def test_what_does_not_fit_is_read_ahead(stride: int) -> None:
    """Page by page would cost a request for each, and would not end that; trials cost next to nothing."""
    sweep = [*range(0, FILE_PAGES, stride)] * 9
    adaptive, fixed = (run(rules, sweep, FILE_PAGES // 40) for rules in ("adaptive", "fixed"))
    print(f"{adaptive.major_faults} major faults, {adaptive.requests} requests; fixed windows {fixed.requests}")
    assert adaptive.pages_read < 1.01 * fixed.pages_read
    assert adaptive.requests < 1.02 * fixed.requests


@pytest.mark.parametrize("strides", [(2, 2), (4, 4, 4, 4), (1, 2), (1, 7), (16, 1)])
@pytest.mark.parametrize("passes", [6, 16, 96])
def test_other_pages_each_time(strides: tuple[int, ...], passes: int) -> None:
    """Then little or nothing is gained by reading alone, and it must not go on: windows are not to be much better.

    Four sets of pages that take turns cost most: each of them fits, and comes back, but not before the others.
    """
    pages: list[int] = []
    for number in range(passes):
        turn = number % len(strides)
        pages += range(turn if len(set(strides)) == 1 else 0, FILE_PAGES, strides[turn])
    adaptive, fixed = (cost(run(rules, pages, ROOM), WINDOW) for rules in ("adaptive", "fixed"))
    print(f"{adaptive / fixed:.2f} times the cost of windows")
    assert adaptive < (3.3 if passes == 6 else 2.2) * fixed

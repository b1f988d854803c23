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


@pytest.mark.parametrize("stride", [1, 2, 3, 5, 15, 16])
def test_what_does_not_fit_is_read_ahead(stride: int) -> None:
    """Page by page would cost a request for each, and would not end that."""
    sweep = [*range(0, FILE_PAGES, stride)] * 9
    adaptive, fixed = (run(rules, sweep, FILE_PAGES // 40) for rules in ("adaptive", "fixed"))
    print(f"{adaptive.major_faults} major faults, {adaptive.requests} requests; fixed windows {fixed.requests}")
    assert adaptive.pages_read < 1.01 * fixed.pages_read
    assert adaptive.requests < 1.02 * fixed.requests


@pytest.mark.parametrize("strides", [(2,), (5,), (16,), (2, 2), (4, 4, 4, 4), (1, 2), (1, 7), (16, 1)])
def test_no_more_than_windows(strides: tuple[int, ...]) -> None:
    """The same pages each time, or others in turn, in memory that holds those of a pass but not the file."""
    pages: list[int] = []
    for number in range(16):
        turn = number % len(strides)
        pages += range(turn if len(set(strides)) == 1 else 0, FILE_PAGES, strides[turn])
    adaptive, fixed = (cost(run(rules, pages, ROOM), WINDOW) for rules in ("adaptive", "fixed"))
    print(f"{adaptive / fixed:.2f} times the cost of windows")
    assert adaptive < 1.01 * fixed


@pytest.mark.parametrize("stride", [15, 16, 17, 32])
def test_what_fits_is_kept(stride: int) -> None:
    """Read alone, all pages of the sweeps stay: those of the second half are all there."""
    sweep = [*range(0, FILE_PAGES, stride)]
    half, all_of_it = (run("adaptive", sweep * sweeps, ROOM) for sweeps in (6, 12))
    assert all_of_it.pages_read == half.pages_read

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


@pytest.mark.parametrize("window", [WINDOW, 1024])
@pytest.mark.parametrize("stride", [15, 16, 32])
def test_what_fits_is_kept(stride: int, window: int) -> None:
    """Read alone, all pages of the sweeps stay: those of the second half are all there."""
    sweep = [*range(7, FILE_PAGES, stride)]
    half, all_of_it = (run("adaptive", sweep * sweeps, ROOM, window) for sweeps in (6, 12))
    assert all_of_it.pages_read == half.pages_read


@pytest.mark.parametrize("row", [9, 10, 12, 16])
def test_a_file_that_fits_is_read_in_windows(row: int) -> None:
    """Columns of a table, after another file has taken the memory, and a few look-ups."""
    other = 2 * FILE_PAGES
    pages = [*range(FILE_PAGES), *range(other), *range(0, FILE_PAGES, 7919)]
    file_of = [0] * FILE_PAGES + [1] * other + [0] * len(range(0, FILE_PAGES, 7919))
    columns = [page for column in range(row) for page in range(column, FILE_PAGES, row)]
    machine = Machine("adaptive", FILE_PAGES + other, FILE_PAGES * 13 // 10, 1024)
    files = (FILE_PAGES, other)
    before = replay(machine, pages, file_of, files)
    after = replay(machine, pages + columns, file_of + [0] * len(columns), files)
    assert after.pages_read - before.pages_read < 1.02 * FILE_PAGES
    assert after.requests - before.requests < FILE_PAGES / 100


def test_what_never_stays_is_read_in_windows() -> None:
    """Sweeps that begin one page later each time touch all of the file, which does not fit."""
    pages = [page for sweep in range(27) for page in range(sweep % 9, FILE_PAGES, 9)]
    adaptive, fixed = (run(rules, pages, FILE_PAGES // 4, 1024) for rules in ("adaptive", "fixed"))
    alone = 4 * FILE_PAGES // 9
    assert adaptive.requests < 1.1 * alone + 2 * fixed.requests

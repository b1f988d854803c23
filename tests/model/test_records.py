# SPDX-License-Identifier: GPL-2.0-only
"""Records that are read whole, in any order, where the largest window is smaller than they are, or as large."""

from collections.abc import Iterable
from random import Random

import pytest

from foliolab.model.library import Counts, Machine, replay

WINDOW = 32
SLOT = 1024
"""Pages from one record to the next: none is read with another."""
RECORDS = 800


def read(rules: str, lengths: Iterable[int], first: int = 0) -> Counts:
    """Read records of these lengths once each, which begin ``first`` pages into a block; memory holds all."""
    places = list(range(first, RECORDS * SLOT, SLOT))
    Random(1).shuffle(places)
    pages = [place + page for place, length in zip(places, lengths, strict=True) for page in range(length)]
    return replay(Machine(rules, RECORDS * SLOT, RECORDS * SLOT, WINDOW), pages)


def test_nobody_waits_for_the_second_half_of_a_record() -> None:
    folio, stock = (read(rules, [2 * WINDOW] * RECORDS) for rules in ("folio", "stock"))
    print(f"major faults {stock.major_faults} -> {folio.major_faults}, pages {stock.pages_read} -> {folio.pages_read}")
    assert folio.major_faults < 1.05 * RECORDS


@pytest.mark.parametrize("first", [0, 5, 11])
@pytest.mark.parametrize("length", [WINDOW - 6, WINDOW])
def test_marks_are_unlearnt_where_records_become_shorter(length: int, first: int) -> None:
    """A window holds them now: half of the records may take two, not more."""
    before = [2 * WINDOW] * (RECORDS // 2)
    long = read("folio", [*before, *[1] * (RECORDS // 2)], first).pages_read
    both = read("folio", [*before, *[length] * (RECORDS // 2)], first).pages_read
    print(f"{(both - long) / (RECORDS // 2):.1f} pages for each record of {length}")
    assert both - long < 1.5 * WINDOW * (RECORDS // 2)


def test_a_record_of_a_window_and_a_quarter_takes_two() -> None:
    pages = read("folio", [WINDOW * 5 // 4] * RECORDS).pages_read / RECORDS
    print(f"{pages:.1f} pages for each")
    assert pages < 2.2 * WINDOW

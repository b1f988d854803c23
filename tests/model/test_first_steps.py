# SPDX-License-Identifier: GPL-2.0-only
"""The first steps for mainline: what misses read."""

from dataclasses import replace

import pytest

from foliolab.model.library import Pattern, simulate
from tests.model.test_rivals import APART, PAGES, interleaved, machine, reads, touch

ON = machine("first-steps", 32)


@pytest.mark.parametrize("window", [1, 2, 7, 32])
def test_windows_of_any_size(window: int) -> None:
    """Nothing is read twice or forgotten where there is memory, and little is read where windows are."""
    for kind in ("sequential", "reverse"):
        counts = simulate(machine("first-steps", window), Pattern(kind), PAGES)
        assert counts.pages_read == counts.accesses == PAGES
    counts = touch(machine("first-steps", window), range(PAGES - 1, 0, -APART))
    assert counts.pages_read <= window * counts.major_faults


def test_the_window_around_misses_shrinks_step_by_step() -> None:
    """Twenty misses halve it."""
    found = list(reads(ON, range(70, PAGES, 72)).values())
    assert found == [*[32] * 20, *[16] * 20, *[8] * 20, *[4] * 20, *[2] * 20, *[1] * (len(found) - 100)]


SPARSE = [page for _, page in zip(range(101), range(70, PAGES, 72), strict=False)]
"""Misses after which a miss reads its page alone."""


def test_a_miss_behind_a_used_page_reads_on() -> None:
    last = SPARSE[-1]
    found = reads(ON, [*SPARSE, last + 1])
    assert found[last] == 1
    assert found[last + 1] == 8


def test_a_miss_before_a_used_page_reads_backward() -> None:
    pages = [*SPARSE, SPARSE[-1] - 1]
    assert reads(ON, pages)[pages[-1]] == 8
    assert touch(ON, [*pages, pages[-1] - 7]).major_faults == len(pages)


def test_a_miss_near_two_cached_pages_reads_sixteen() -> None:
    block = 16 * (PAGES // 16 - 1)
    assert SPARSE[-1] < block - 100
    found = reads(ON, [*SPARSE, block + 1, block + 14, block + 7])
    assert [found[block + away] for away in (1, 14)] == [1, 1]
    assert found[block + 7] > 8


def test_misses_on_evicted_pages_make_windows_small_at_once() -> None:
    """Memory for a quarter: the second pass finds nothing of the first."""
    little = replace(ON, memory_pages=PAGES // 16)
    pages = range(70, PAGES, 640)
    first, both = (touch(little, [*pages] * times) for times in (1, 2))
    assert both.pages_read - first.pages_read < first.pages_read


def test_any_number_of_scans_keep_their_windows() -> None:
    counts = touch(ON, interleaved(20, 200))
    assert counts.waits < 20 * 12

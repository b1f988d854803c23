# SPDX-License-Identifier: GPL-2.0-only
"""The first steps for mainline: what misses read."""

from dataclasses import replace

from tests.model.test_rivals import PAGES, interleaved, machine, reads, touch

ON = machine("first-steps", 32)


def test_the_window_around_misses_shrinks_step_by_step() -> None:
    """Twenty misses halve it."""
    found = list(reads(ON, range(70, PAGES, 72)).values())
    assert found == [*[32] * 20, *[16] * 20, *[8] * 20, *[4] * 20, *[2] * 20, *[1] * (len(found) - 100)]


SPARSE = range(70, 70 + 101 * 72, 72)
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
    assert found[block + 7] == 14  # sixteen, two of them cached


def test_misses_on_evicted_pages_make_windows_small_at_once() -> None:
    """Memory does not hold what a pass reads: the second one finds little of the first."""
    little = replace(ON, memory_pages=PAGES // 80)
    pages = range(70, PAGES, 640)
    first, both = (touch(little, [*pages] * times) for times in (1, 2))
    assert both.major_faults > 1.5 * first.major_faults
    assert both.pages_read - first.pages_read < first.pages_read / 2


def test_any_number_of_scans_keep_their_windows() -> None:
    counts = touch(ON, interleaved(20, 200))
    assert counts.waits < 20 * 12

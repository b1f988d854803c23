# SPDX-License-Identifier: GPL-2.0-only
import random

import pytest

from foliohost.costs import MOST_DISAGREEMENT, MOST_KB, Cost, Estimate, cost, fit
from foliohost.processes import PAGE_BYTES

SIZES = (1, 4, 8, 16, 32, 64, 128, 256)
PAGE_KB = PAGE_BYTES / 1024


def rounds(request: float, page: float, noise: float, number: int = 16) -> dict[int, list[float]]:
    """Times of a disk on which each read takes up to so much more or less."""
    numbers = random.Random(3)
    return {pages: [request + page * pages + numbers.uniform(-noise, noise) for _ in range(number)] for pages in SIZES}


def test_a_line_is_found_exactly() -> None:
    assert fit({pages: 50 + 8.8 * pages for pages in SIZES}) == pytest.approx((50, 8.8))
    assert fit({1: 60.0, 16: 210.0}) == pytest.approx((50, 10))


@pytest.mark.parametrize("wrong", [1, 16, 256])
def test_one_size_that_is_disturbed_changes_nothing(wrong: int) -> None:
    times = {pages: 50 + 8.8 * pages for pages in SIZES}
    assert fit(times | {wrong: 2 * times[wrong]}) == pytest.approx((50, 8.8))


def test_a_disk_that_seeks_has_its_price_in_a_wide_range() -> None:
    """8 ms for each request, up to 4 more or less, and 150 MB/s."""
    found = cost(rounds(8000, 27, 4000))
    assert found.request_us.low < 8000 < found.request_us.high
    assert found.page_us.low < 27 < found.page_us.high
    assert found.request_kb.high > 1.1 * found.request_kb.low


def test_a_disk_that_is_always_the_same_is_certain() -> None:
    found = cost(rounds(50, 8.8, 0))
    assert found.disagreement == pytest.approx(0)
    assert found.certain
    assert found.request_kb.low == pytest.approx(found.request_kb.high)
    assert found.request_kb.value == pytest.approx(50 / 8.8 * PAGE_KB)


def test_halves_that_disagree_are_told_and_the_price_is_the_upper_end() -> None:
    early, late = rounds(50, 10, 0, 8), rounds(100, 10, 0, 8)
    found = cost({pages: early[pages] + late[pages] for pages in SIZES})
    assert found.disagreement == pytest.approx(1.0)
    assert not found.certain
    assert found.request_us.low <= 50 + 1e-9
    assert found.request_us.high >= 100 - 1e-9
    assert found.recommended_kb >= 10 * PAGE_KB


def test_a_page_that_is_lost_in_the_noise_is_no_endless_price() -> None:
    found = cost({pages: [5000.0 - pages] * 4 for pages in SIZES})
    assert found.page_us.value > 0
    assert found.recommended_kb == MOST_KB


@pytest.mark.parametrize(
    ("value", "disagreement", "kb"),
    [
        (0.3, 0.0, 1),
        (7.2, 0.0, 8),
        (22.7, 0.0, 23),
        (22.7, MOST_DISAGREEMENT, 23),
        (22.7, 0.3, 41),
        (101.0, 0.0, 110),
        (1150.0, 0.0, 1200),
        (65500.0, 0.0, MOST_KB),
    ],
)
def test_the_price_is_rounded_up(value: float, disagreement: float, kb: int) -> None:
    anything = Estimate(1, 1, 1)
    assert Cost(anything, anything, Estimate(value, 0.1, 40.1), disagreement).recommended_kb == kb

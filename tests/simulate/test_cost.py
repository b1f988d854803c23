# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.device import Device
from foliolab.model.library import Counts
from foliolab.simulate.suite import cost

COUNTS = Counts(
    accesses=900, major_faults=3, minor_faults=800, pages_read=100, waits=3, requests=5, seeks=2, pages_skipped=50,
    evicted=7, evicted_unused=7, refaults=7, looks=9, most_looks=9, kinds=(0, 0, 0, 0),
)  # fmt: skip
PAGE = 4096 / 10**6
"""Seconds in which a page passes."""


def device(rate: int = 0, depth: int = 8) -> Device:
    return Device("d", latency_us=10**7, megabytes_per_second=1, requests_per_second=rate, queue_depth=depth)


def test_waits_and_pages_cost() -> None:
    assert cost(COUNTS, device()) == pytest.approx(3 * 10 + 100 * PAGE)


def test_requests_cost_where_only_so_many_are_taken() -> None:
    assert cost(COUNTS, device(rate=2)) == pytest.approx(3 * 10 + 5 / 2 + 100 * PAGE)


def test_seeks_and_what_is_skipped_cost_where_there_is_a_head() -> None:
    assert cost(COUNTS, device(depth=1)) == pytest.approx(2 * 10 + 150 * PAGE)


@pytest.mark.parametrize(
    ("latency_us", "speed", "rate", "kb"),
    [
        (80, 3000, 0, 234),
        (1000, 125, 3000, 122),
        # So few requests a second take longer than each by itself.
        (1000, 125, 100, 1221),
        (0, 3000, 0, 1),
    ],
)
def test_a_request_is_worth_what_passes_while_a_program_waits_for_it(
    latency_us: int, speed: int, rate: int, kb: int
) -> None:
    assert Device("d", latency_us, speed, rate, 64).request_kb == kb

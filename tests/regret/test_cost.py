# SPDX-License-Identifier: GPL-2.0-only
import pytest
from msgspec.structs import replace

from foliolab.model.library import Counts
from foliolab.regret.suite import ModelDevice, cost

COUNTS = Counts(
    accesses=900, major_faults=3, minor_faults=800, pages_read=100, waits=3, requests=5, seeks=2, pages_skipped=50,
    evicted=7, evicted_unused=7, refaults=7, looks=9, most_looks=9, kinds=(0, 0, 0, 0),
)  # fmt: skip


def test_waits_requests_and_bytes_cost() -> None:
    device = ModelDevice("d", wait=10, request=1, bytes_per_second=4096)
    assert cost(COUNTS, device) == pytest.approx(3 * 10 + 5 * 1 + 100)


def test_seeks_and_what_is_skipped_cost_on_a_disk() -> None:
    device = ModelDevice("d", wait=0, request=1, seek=1000, reads_skipped=True, bytes_per_second=4096)
    assert cost(COUNTS, device) == pytest.approx(5 * 1 + 2 * 1000 + 100 + 50)
    assert cost(COUNTS, replace(device, reads_skipped=False)) == pytest.approx(5 * 1 + 2 * 1000 + 100)

# SPDX-License-Identifier: GPL-2.0-only
"""What was not measured, or cannot be, and stands in the matrix all the same."""

import pytest

from foliolab.analyse.losses import by_variant
from tests.analyse.matrix import CELLS, boots, failed, matrix


@pytest.mark.parametrize(("fails", "others"), [("adaptive", "off"), ("off", "adaptive")])
def test_a_failure_is_a_gap_and_a_workload_that_is_missing(fails: str, others: str) -> None:
    found = matrix(*boots(others, {"major_faults": 1}), failed(fails))
    assert not found.differences
    (gap,) = found.gaps
    assert (gap.variant, gap.outcome, gap.sentence, gap.failed) == (fails, "guest-crash", "Oops: int3.", True)
    (summary,) = by_variant(found)
    assert (summary.workloads, summary.missing) == (0, 1)


def test_one_failed_boot_of_several_is_a_gap_beside_the_figures() -> None:
    figures = [{"major_faults": 1000.0}] * 2
    found = matrix(*boots("off", *figures), *boots("adaptive", *figures[:1]), failed("adaptive", repetition=2))
    assert [each.n for each in found.differences] == [1]
    assert ("adaptive", "guest-crash") in [(gap.variant, gap.outcome) for gap in found.gaps]
    (summary,) = by_variant(found)
    assert (summary.workloads, summary.missing) == (1, 1)


def test_what_does_not_apply_is_a_gap_that_is_no_failure() -> None:
    found = matrix(*boots("off", {"major_faults": 1}), failed("adaptive", outcome="not-applicable"))
    (gap,) = found.gaps
    assert (gap.outcome, gap.failed) == ("not-applicable", False)
    assert by_variant(found)[0].missing == 0


def test_what_nobody_measured_is_a_gap() -> None:
    gaps = matrix(*boots("off", {"major_faults": 1}), cells=CELLS).gaps
    assert [(gap.workload, gap.variant, gap.outcome) for gap in gaps] == [
        ("gcc", "adaptive", "not-measured"),
        ("sqlite", "off", "not-measured"),
        ("sqlite", "adaptive", "not-measured"),
    ]
    assert [gap.variant for gap in matrix().gaps] == ["off", "adaptive"]


def test_a_metric_that_the_variant_lacks_is_a_gap() -> None:
    both = {"major_faults": 1.0, "read_bytes": 1.0}
    found = matrix(*boots("off", both), *boots("adaptive", {"major_faults": 1}), metrics=tuple(both))
    assert [each.metric for each in found.differences] == ["major_faults"]
    (gap,) = found.gaps
    assert (gap.outcome, gap.sentence, gap.failed) == ("not-measured", "read_bytes is missing.", True)


def test_a_metric_that_the_baseline_lacks_says_nothing_of_the_variant() -> None:
    both = {"major_faults": 1.0, "read_bytes": 1.0}
    found = matrix(*boots("off", {"major_faults": 1}), *boots("adaptive", both), metrics=tuple(both))
    (gap,) = found.gaps
    assert (gap.outcome, gap.sentence, gap.failed) == ("not-counted", "read_bytes is missing.", False)

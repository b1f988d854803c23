# SPDX-License-Identifier: GPL-2.0-only
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from foliolab.analyse.expected import Status, Verdict, judge
from foliolab.analyse.rows import group_samples, make_rows
from foliolab.campaign.sample import Sample
from foliolab.experiment.load import find_experiment
from foliolab.experiment.spec import FLOOR, PUBLISHED_FIGURE, Expectation
from tests.samples import sample

SAYS = Expectation(
    says="less",
    scales=("quick",),
    cell={"pattern": "random"},
    variants=("published",),
    metrics=("read_bytes",),
    relative_to="off",
    at_least=0.1,
    at_most=0.5,
)


def verdicts(expectation: Expectation, *samples: Sample) -> list[Verdict]:
    experiment = replace(find_experiment("sparse-mmap"), expectations=(expectation,))
    (group,) = group_samples(samples)
    return judge(experiment, group, make_rows(group, experiment))


@pytest.mark.parametrize(
    ("read_bytes", "status"), [(9, Status.FAILS), (10, Status.HOLDS), (50, Status.HOLDS), (51, Status.FAILS)]
)
def test_bounds_are_inclusive(read_bytes: int, status: Status) -> None:
    (verdict,) = verdicts(SAYS, sample(100), sample(read_bytes, variant="published"))
    assert (verdict.status, verdict.value) == (status, read_bytes / 100)


def test_published_values_are_scaled() -> None:
    expectation = structs.replace(SAYS, variants=("off",), relative_to=PUBLISHED_FIGURE, at_least=0.99, at_most=1.01)
    (verdict,) = verdicts(expectation, sample(round(223.377 * (1 << 30) / 8)))
    assert verdict.status is Status.HOLDS
    assert verdict.value == pytest.approx(1)


def test_a_metric_in_multiples_of_its_floor() -> None:
    expectation = structs.replace(SAYS, relative_to=FLOOR, at_least=None, at_most=2.0)
    (verdict,) = verdicts(expectation, sample(30, variant="published"))
    assert (verdict.status, verdict.value) == (Status.FAILS, 3)
    (verdict,) = verdicts(expectation, sample(variant="published", metrics={"read_bytes": 30}))
    assert (verdict.status, verdict.reason) == (Status.NOT_MEASURED, "published has no floor_bytes")


def test_a_metric_in_multiples_of_another_cell_s() -> None:
    expectation = structs.replace(
        SAYS, cell={"stride": 2053}, relative_to="published", where={"stride": 1021}, at_least=None, at_most=1.05
    )
    stride = {"pattern": "stride", "stride": 2053}
    mine = sample(110, variant="published", cell=stride)
    (verdict,) = verdicts(expectation, mine)
    assert (verdict.status, verdict.reason) == (Status.NOT_MEASURED, "published with stride 1021 was not measured")
    (verdict,) = verdicts(expectation, mine, sample(100, variant="published", cell={**stride, "stride": 1021}))
    assert (verdict.status, verdict.value) == (Status.FAILS, 1.1)
    assert verdict.relative_to == "published with stride 1021"


def test_what_was_not_tried_is_not_measured() -> None:
    (verdict,) = verdicts(SAYS, sample(100))
    assert (verdict.status, verdict.reason) == (Status.NOT_MEASURED, "published was not measured")
    (verdict,) = verdicts(SAYS, sample(1, variant="published"))
    assert (verdict.status, verdict.reason) == (Status.NOT_MEASURED, "off was not measured")


def test_what_was_tried_and_crashed_fails() -> None:
    (verdict,) = verdicts(SAYS, sample(100), sample(variant="published", outcome="guest-crash", sentence="Oops."))
    assert (verdict.status, verdict.reason) == (Status.FAILS, "published ended as guest-crash")


def test_a_metric_that_the_guest_could_not_count_is_not_measured() -> None:
    expectation = structs.replace(SAYS, metrics=("instructions",))
    (verdict,) = verdicts(expectation, sample(100), sample(20, variant="published"))
    assert verdict.status is Status.NOT_MEASURED


def test_nothing_read_equals_nothing_read() -> None:
    expectation = structs.replace(SAYS, at_least=1.0, at_most=1.0)
    (verdict,) = verdicts(expectation, sample(0), sample(0, variant="published"))
    assert (verdict.status, verdict.value) == (Status.HOLDS, 1)
    (verdict,) = verdicts(expectation, sample(0), sample(1, variant="published"))
    assert (verdict.status, verdict.value, verdict.reason) == (Status.FAILS, None, "1 instead of none")


def test_anything_is_many_times_nothing() -> None:
    expectation = structs.replace(SAYS, at_least=2.0, at_most=None)
    (verdict,) = verdicts(expectation, sample(0), sample(1, variant="published"))
    assert (verdict.status, verdict.value) == (Status.HOLDS, None)
    (verdict,) = verdicts(expectation, sample(0), sample(0, variant="published"))
    assert (verdict.status, verdict.value) == (Status.FAILS, 1)


def test_only_repetitions_that_both_have_are_divided() -> None:
    base = [sample(value, repetition=number) for number, value in enumerate((100, 300), start=1)]
    (verdict,) = verdicts(SAYS, *base, sample(50, variant="published"))
    assert (verdict.status, verdict.value) == (Status.HOLDS, 0.5)
    (verdict,) = verdicts(SAYS, *base, sample(50, variant="published", repetition=3))
    assert (verdict.status, verdict.reason) == (Status.NOT_MEASURED, "published has other repetitions only")


def test_a_partial_cell_stands_for_all_that_match() -> None:
    expectation = structs.replace(SAYS, cell={"pattern": "stride"}, metrics=("read_bytes", "major_faults"))
    found = verdicts(expectation, sample(100))
    assert [(verdict.cell.label, verdict.metric) for verdict in found] == [
        (f"stride {stride}", metric) for stride in (1021, 2053, 4099) for metric in ("read_bytes", "major_faults")
    ]


def test_other_scales_are_left_alone() -> None:
    assert verdicts(SAYS, sample(100, scale="full")) == []
    assert verdicts(SAYS, sample(100, scale="one that the file no longer has")) == []


def test_an_absolute_bound_is_of_the_metric_itself() -> None:
    absolute = structs.replace(SAYS, metrics=("contpte_share",), relative_to=None, at_least=0.9, at_most=None)
    (verdict,) = verdicts(absolute, sample(variant="published", metrics={"contpte_share": 0.95}))
    assert (verdict.status, verdict.value) == (Status.HOLDS, 0.95)
    (verdict,) = verdicts(absolute, sample(variant="published", metrics={"contpte_share": 0.85}))
    assert verdict.status is Status.FAILS


def test_expectations_for_other_machines_are_left_alone() -> None:
    elsewhere = structs.replace(SAYS, machines=("arm64-4k",))
    assert verdicts(elsewhere, sample(100), sample(9, variant="published")) == []
    arm: dict[str, Any] = {"arch": "arm64", "page_size": 4096}
    (verdict,) = verdicts(elsewhere, sample(100, **arm), sample(9, variant="published", **arm))
    assert verdict.status is Status.FAILS


def test_what_does_not_apply_is_not_measured() -> None:
    (verdict,) = verdicts(SAYS, sample(100), sample(variant="published", outcome="not-applicable", sentence="No."))
    assert (verdict.status, verdict.reason) == (Status.NOT_MEASURED, "published was not measured")

# SPDX-License-Identifier: GPL-2.0-only
from dataclasses import replace
from typing import Any

import pytest

from foliolab.analyse.agreement import Agreement, AgreementFigure, compare
from foliolab.analyse.rows import group_samples
from foliolab.campaign.sample import Sample
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.spec import Experiment
from tests.samples import sample

AGREEMENT = {"read_bytes": 0.03, "major_faults": 0.05}


def experiment(**agreement: float) -> Experiment:
    return replace(find_experiment("sparse-mmap"), agreement=agreement or AGREEMENT)


def modelled(read_bytes: int, **changes: Any) -> Sample:
    return sample(read_bytes, **{"backend": "model", "kernel": "policy", "workload": "w2", **changes})


def compared(*samples: Sample, by: Experiment | None = None) -> list[Agreement]:
    return compare(group_samples(samples), {"sparse-mmap": by or experiment()})


def figure(model: float, kernel: float, tolerance: float, n: int = 1) -> AgreementFigure:
    return AgreementFigure(Cell.of({"pattern": "random"}), "off", n, "read_bytes", model, kernel, tolerance)


def test_figures_of_the_same_measurement_stand_beside_each_other() -> None:
    (comparison,) = compared(modelled(102), sample(100), modelled(1, variant="published"))
    (row,) = comparison.rows
    assert list(row) == ["read_bytes", "major_faults"]
    assert row["read_bytes"] == figure(102, 100, 0.03)
    assert row["read_bytes"].difference == pytest.approx(0.02)
    assert comparison.beyond == []


def test_what_differs_by_more_than_it_may_is_beyond() -> None:
    (comparison,) = compared(modelled(96), sample(100))
    (found,) = comparison.beyond
    assert (found.variant, found.metric, round(found.difference or 0, 6)) == ("off", "read_bytes", -0.04)


def test_nothing_agrees_with_nothing_only() -> None:
    assert figure(0, 0, 0.0).within
    assert (figure(1, 0, 0.5).difference, figure(1, 0, 0.5).within) == (None, False)
    assert not figure(0, 1, 0.5).within


def test_only_repetitions_that_both_have_count() -> None:
    ours = [modelled(value, repetition=number) for number, value in enumerate((10, 20, 90), start=1)]
    (comparison,) = compared(*ours, sample(20, repetition=2), sample(90, repetition=3))
    assert comparison.rows[0]["read_bytes"] == figure(55, 55, 0.03, n=2)


def test_rows_stand_in_the_experiment_s_order() -> None:
    stride: dict[str, str | int] = {"pattern": "stride", "stride": 1021}
    places = [(stride, "off"), ({"pattern": "random"}, "published"), ({"pattern": "random"}, "off")]
    ours = [modelled(5, cell=cell, variant=variant) for cell, variant in places]
    theirs = [sample(5, cell=cell, variant=variant) for cell, variant in places]
    (comparison,) = compared(*ours, *theirs)
    order = [(each.cell.label, each.variant) for each in comparison.figures if each.metric == "read_bytes"]
    assert order == [("random", "off"), ("random", "published"), ("stride 1021", "off")]


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {"cpus": 1}},
        {"scale": "full"},
        {"page_size": 16384},
        {"profile": "debug"},
        {"variant": "published"},
        {"outcome": "guest-crash", "metrics": {}},
        {"backend": "model", "kernel": "policy", "workload": "w2", "repetition": 2},
    ],
)
def test_other_measurements_are_not_compared(changes: dict[str, Any]) -> None:
    assert compared(modelled(96), sample(100, **changes)) == []


def test_every_kernel_is_compared() -> None:
    comparisons = compared(
        modelled(96), sample(100), sample(96, backend="qemu-kvm"), sample(96, kernel="k2", arch="arm64")
    )
    assert [(comparison.kernel.title.split(", ", 2)[2], len(comparison.beyond)) for comparison in comparisons] == [
        ("x86_64 with 4 KiB pages, backend qemu-tcg", 1),
        ("x86_64 with 4 KiB pages, backend qemu-kvm", 0),
        ("arm64 with 4 KiB pages, backend qemu-tcg", 0),
    ]
    assert comparisons[0].model.title == "sparse-mmap, scale quick, 4 KiB pages, backend model"


def test_without_its_file_nothing_is_said_of_an_experiment() -> None:
    assert compare(group_samples([modelled(96), sample(100)]), {}) == []


def test_without_tolerances_there_is_nothing_to_say() -> None:
    assert compared(modelled(96), sample(100), by=replace(experiment(), agreement={})) == []


def test_a_metric_that_one_lacks_is_left_out() -> None:
    (comparison,) = compared(modelled(100), sample(100), by=experiment(read_bytes=0.1, seconds=0.1))
    assert [each.metric for each in comparison.figures] == ["read_bytes"]

# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that were measured twice, and what is said of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest

from foliolab.analyse.losses import Arm, highest_share, make_arms
from foliolab.errors import NoResult
from foliolab.experiment.cell import expand
from foliolab.experiment.load import find_experiment
from foliolab.experiment.spec import Experiment
from foliolab.report.again import sentence, to_json
from foliolab.report.markdown import again_to_table
from tests.analyse.matrix import boots

_CHANCE = ([500, 510, 490, 505, 495, 500], [505, 500, 495, 500, 490, 512])
_ALARM = ([500, 510, 490, 505, 495, 500], [600, 611, 592, 607, 599, 605])


def about(workloads: Iterable[str]) -> Experiment:
    experiment = find_experiment("sparse-mmap")
    scale = replace(experiment.scale("quick"), cells=tuple(expand({"workload": list(workloads)})))
    return replace(experiment, name="programs", compared=("major_faults",), scales={"quick": scale})


def arms(workloads: Mapping[str, tuple[Sequence[int], Sequence[int]]], variant: str = "off") -> list[Arm]:
    """Major faults of each workload, in boots of a variant, and in others of the same one."""
    samples = [
        each
        for workload, both in workloads.items()
        for name, faults in zip((variant, f"{variant} again"), both, strict=True)
        for each in boots(name, *({"major_faults": one} for one in faults), workload=workload)
    ]
    return make_arms(samples, {"programs": about(workloads)})


def test_what_repeats_and_what_varies_is_told_apart_and_alarms_are_counted() -> None:
    (arm,) = arms({"gcc": _CHANCE, "sqlite": _ALARM, "lmdb": ([7] * 6, [7] * 6)})
    assert (arm.variant, arm.n, len(arm.differences), arm.varying, arm.alarms) == ("off", 6, 3, 2, 1)


def test_an_experiment_without_a_file_a_metric_or_the_scale_has_no_arms() -> None:
    samples = [*boots("off", {"major_faults": 1}), *boots("off again", {"major_faults": 1})]
    experiment = about(["gcc"])
    assert make_arms(samples, {"programs": experiment})
    assert make_arms(samples, {}) == []
    for lacking in (replace(experiment, compared=()), replace(experiment, scales={})):
        assert make_arms(samples, {"programs": lacking}) == []


def test_five_boots_tell_nothing() -> None:
    (arm,) = arms({"sqlite": (_ALARM[0][:5], _ALARM[1][:5])})
    assert (arm.varying, arm.alarms) == (0, 0)
    assert sentence([arm]) == "A/A: no kernel was measured twice, in boots enough to tell anything."


def test_all_arms_are_said_in_one_line() -> None:
    found = [*arms({"gcc": _CHANCE, "sqlite": _ALARM}), *arms({"gcc": _CHANCE}, "off-mglru")]
    assert again_to_table(found).splitlines()[2:] == [
        "| programs | x86_64-4k | off | 6 | 2 | 2 | 1 |",
        "| programs | x86_64-4k | off-mglru | 6 | 1 | 1 | 0 |",
        "",
        "A/A: of 3 comparisons that vary, 1 differ at 5 % each, or 33.3 %; chance may make it 5 %."
        " The share is at most 86.5 % (exact binomial, 95 %).",
    ]
    assert to_json(found)["all"] == [
        {"vary": 3, "alarms": 1, "nominal": 0.05, "at_most": pytest.approx(0.8646, abs=1e-3)}
    ]
    with pytest.raises(NoResult):
        again_to_table([])


def test_the_bound_is_that_of_the_binomial_distribution() -> None:
    """Of none in n the greatest share p has (1 - p)^n = 5 %."""
    assert highest_share(0, 200) == pytest.approx(1 - 0.05 ** (1 / 200))
    assert highest_share(3, 3) == 1

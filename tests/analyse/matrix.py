# SPDX-License-Identifier: GPL-2.0-only
"""A small matrix of samples that were never measured."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from foliolab.analyse.differences import MatrixPart
from foliolab.analyse.losses import Matrix, make_matrix
from foliolab.analyse.rows import group_samples
from foliolab.campaign.sample import OK, Sample
from foliolab.experiment.cell import Cell, expand
from foliolab.experiment.load import find_experiment
from tests.samples import sample

METRICS = ("major_faults", "contpte_share", "read_bytes")
CELLS = tuple(expand({"workload": ["gcc", "sqlite"]}))

Figures = Mapping[str, float]


def boots(variant: str, *each: Figures, workload: str = "gcc") -> list[Sample]:
    """A sample for each of these figures, all of one variant."""
    return [
        sample(
            experiment="programs",
            cell={"workload": workload},
            variant=variant,
            repetition=number,
            metrics=dict(figures),
        )
        for number, figures in enumerate(each, start=1)
    ]


def failed(variant: str, workload: str = "gcc", outcome: str = "guest-crash", repetition: int = 1) -> Sample:
    sentence = "Oops: int3." if outcome == "guest-crash" else f"'{variant}' is for arm64-64k only."
    cell: dict[str, str | int] = {"workload": workload}
    return sample(
        experiment="programs", cell=cell, variant=variant, outcome=outcome, sentence=sentence, repetition=repetition
    )


def matrix(
    *samples: Sample,
    cells: Sequence[Cell] = CELLS[:1],
    variants: Sequence[str] = ("adaptive",),
    metrics: Sequence[str] = METRICS,
    threshold: float = 0.02,
    repeats: bool = True,
) -> Matrix:
    """With ``repeats``, the baseline has been measured a second time, to the same figures."""
    again = [
        replace(each, variant="off again", key=f"again {each.key}")
        for each in samples
        if repeats and (each.variant, each.outcome) == ("off", OK)
    ]
    experiment = replace(find_experiment("sparse-mmap"), name="programs", compared=tuple(metrics))
    group = next(iter(group_samples([*samples, *again])), None)
    part = MatrixPart(experiment, "quick", "x86_64", 4096, tuple(cells), tuple(variants), group)
    return make_matrix([part], baseline="off", threshold=threshold)

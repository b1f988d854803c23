# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that were measured twice (A/A): how often chance alone makes a kernel differ from itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from foliolab.analyse.differences import Difference, MatrixPart
from foliolab.analyse.losses import make_matrix
from foliolab.analyse.select import Group, group_samples
from foliolab.campaign.sample import Sample
from foliolab.experiment.spec import Experiment
from foliolab.experiment.variants import again_name
from foliolab.paired import CHANCE


@dataclass(frozen=True)
class Arm:
    """A variant beside itself, in boots of their own."""

    group: Group
    variant: str
    differences: tuple[Difference, ...]

    @property
    def n(self) -> int:
        return max(each.n for each in self.differences)

    @property
    def varying(self) -> list[Difference]:
        """Figures that do not repeat exactly, in as many boots as can tell something."""
        return [each for each in self.differences if each.p is not None and each.interval]

    @property
    def alarms(self) -> int:
        """How many of these differ, each judged by itself."""
        return sum(each.p is not None and each.p <= CHANCE for each in self.varying)


def make_arms(samples: Iterable[Sample], experiments: Mapping[str, Experiment]) -> list[Arm]:
    """All that there are, by experiment, machine and variant."""
    arms = []
    for group in group_samples(samples):
        experiment = experiments.get(group.experiment)
        if not experiment or not experiment.regress or group.scale not in experiment.scales:
            continue
        measured = dict.fromkeys(sample.variant for sample in group.samples)
        cells = experiment.scale(group.scale).cells
        for variant in (name for name in measured if again_name(name) in measured):
            part = MatrixPart(experiment, group.scale, group.arch, group.page_size, cells, (), group)
            arms.append(Arm(group, variant, make_matrix([part], baseline=variant, threshold=0).again))
    return [arm for arm in arms if arm.differences]


def highest_share(alarms: int, comparisons: int) -> float:
    """The share of false alarms that so many of at least one comparison leave possible: 95 %, exact binomial.

    Figures of one boot are not quite independent, which the bound takes them to be.
    """
    from scipy.stats import binomtest  # takes longer to load than most commands run

    return float(binomtest(alarms, comparisons).proportion_ci(1 - 2 * CHANCE, method="exact").high)


def totals(arms: Sequence[Arm]) -> tuple[int, int]:
    """How many comparisons vary, and how many of these are false alarms."""
    return sum(len(arm.varying) for arm in arms), sum(arm.alarms for arm in arms)

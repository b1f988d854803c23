# SPDX-License-Identifier: GPL-2.0-only
"""From an experiment to an ordered list of boots.

Every repetition is a boot of its own for each kernel. All variants of a kernel share its
boot and stand next to each other at each cell, so that whatever drifts, drifts for all of
them. What comes first must not matter: cells are shuffled with a seed made of the experiment's name and
the repetition, the variants at a cell and the kernels of a repetition are rotated.
A variant that sets no switch needs a kernel as booted, and gets boots of its own, as does one that is measured again.
Where measurements would learn from each other, each has one (``boot_each``).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from msgspec import structs

from foliolab.errors import EmptyPart, UsageError
from foliolab.experiment.cell import Cell
from foliolab.experiment.spec import Experiment, Scale
from foliolab.experiment.variants import Variant
from foliolab.grouped import grouped

_Item = TypeVar("_Item")

_MOST_REPETITIONS = 10_000
"""All boots of a plan are known before the first."""


@dataclass(frozen=True)
class Step:
    """One measurement."""

    cell: Cell
    variant: Variant
    repetition: int


@dataclass(frozen=True)
class PlannedBoot:
    kernel: str
    repetition: int
    """Counted from 1."""
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Plan:
    experiment: Experiment
    scale: Scale
    boots: tuple[PlannedBoot, ...]

    @property
    def steps(self) -> list[Step]:
        return [step for boot in self.boots for step in boot.steps]

    def part(self, number: int, of: int) -> "Plan":
        """One of ``of`` parts, counted from 1. What is compared in pairs, which is a repetition, is not torn apart
        if there are as many repetitions as parts."""
        if len({boot.repetition for boot in self.boots}) >= of:
            mine = [boot for boot in self.boots if boot.repetition % of == number % of]
        else:
            mine = list(self.boots[number - 1 :: of])
        if not mine:
            raise EmptyPart(
                f"{self.experiment.name} takes {len(self.boots)} boots, and part {number} of {of} has none of them."
            )
        return replace(self, boots=tuple(mine))

    def with_at_most(self, cpus: int | None) -> "Plan":
        """The plan for a backend that gives a guest no more CPUs than that; samples record how many it had.

        UsageError if more of them lie on nodes.
        """
        parameters = self.scale.parameters
        if cpus is None or parameters.cpus <= cpus:
            return self
        if parameters.nodes:
            raise UsageError(
                f"The nodes of {self.experiment.name} have {parameters.cpus} processors, and here guests have {cpus}."
            )
        return replace(self, scale=replace(self.scale, parameters=structs.replace(parameters, cpus=cpus)))


def make_plan(
    experiment: Experiment,
    scale: Scale,
    *,
    variants: Sequence[Variant] | None = None,
    cells: Sequence[Cell] | None = None,
    repetitions: int | None = None,
) -> Plan:
    """Plan the boots; what is not given is the scale's own choice."""
    chosen = variants or scale.variants
    wanted = cells or scale.cells
    count = scale.repetitions if repetitions is None else repetitions
    if count < 1:
        raise UsageError("At least one repetition is needed.")
    if count > _MOST_REPETITIONS:
        raise UsageError(f"{count:,} repetitions are more than the {_MOST_REPETITIONS:,} that can be planned.")
    groups = list(grouped(chosen, lambda variant: variant.boot).values())
    boots = []
    for repetition in range(1, count + 1):
        order = list(wanted)
        random.Random(f"{experiment.name}/{repetition}").shuffle(order)
        for members in _rotated(groups, repetition - 1):
            steps = [
                Step(cell, variant, repetition)
                for position, cell in enumerate(order)
                for variant in _rotated(members, repetition - 1 + position)
            ]
            together = [[step] for step in steps] if scale.parameters.boot_each else [steps]
            boots += [PlannedBoot(members[0].kernel, repetition, tuple(some)) for some in together]
    return Plan(experiment, scale, tuple(boots))


def _rotated(items: Sequence[_Item], by: int) -> list[_Item]:
    start = by % len(items)
    return [*items[start:], *items[:start]]

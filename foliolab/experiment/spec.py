# SPDX-License-Identifier: GPL-2.0-only
"""What an experiment is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from foliolab.errors import UsageError
from foliolab.experiment.cell import Cell, Value
from foliolab.experiment.variants import Variant

Filesystem = Literal["ext4", "xfs"]

PUBLISHED = "published"
"""The value of ``Expectation.relative_to`` that means the published figure, times the scale's factor."""


@dataclass(frozen=True)
class Parameters:
    """The guest and the file that all cells of a scale share."""

    memory_bytes: int
    file_bytes: int
    filesystem: Filesystem
    cpus: int
    read_ahead_kb: int
    watermark_scale_factor: int
    """How much memory is kept free, in 1/10,000 between watermarks; 10 is the kernel's own choice."""
    fraction: float
    """Share of the file's pages that is touched."""
    deadline_seconds: int
    """After which a cell counts as a hang, by the host's clock, before any allowance for emulation."""


@dataclass(frozen=True)
class Scale:
    """A size at which the experiment can be run."""

    name: str
    factor: float
    """What a published count is multiplied with to be comparable."""
    parameters: Parameters
    cells: tuple[Cell, ...]
    variants: tuple[Variant, ...]
    """That are measured unless the user chooses others."""
    repetitions: int


@dataclass(frozen=True)
class Published:
    """A published result, at factor 1."""

    cell: Cell
    variants: tuple[str, ...]
    read_bytes: float
    seconds: float


@dataclass(frozen=True)
class Expectation:
    """A claim that the medians of ``metrics``, divided by what they are relative to, lie within bounds."""

    says: str
    scales: tuple[str, ...]
    cell: tuple[tuple[str, Value], ...]
    """Axis values; the claim is made for every cell that has them."""
    variants: tuple[str, ...]
    metrics: tuple[str, ...]
    relative_to: str
    """A variant, or PUBLISHED."""
    at_least: float | None
    at_most: float | None


@dataclass(frozen=True)
class Experiment:
    name: str
    question: str
    metric: str
    """The counter that must move."""
    floor: str
    """The metric below which ``metric`` cannot come."""
    argv: tuple[str, ...]
    """The probe's command; {data}, the file's path in the guest, {fraction} and {repetition} stand in braces."""
    scales: Mapping[str, Scale]
    published: tuple[Published, ...]
    expectations: tuple[Expectation, ...]
    notes: tuple[str, ...]
    """Sentences that belong under every table of this experiment."""

    def scale(self, name: str) -> Scale:
        if name not in self.scales:
            raise UsageError(f"{self.name} has no scale '{name}'; known: {', '.join(self.scales)}.")
        return self.scales[name]

    def published_for(self, variant: str, cell: Cell) -> Published | None:
        for entry in self.published:
            if variant in entry.variants and entry.cell == cell:
                return entry
        return None

    def command(self, cell: Cell, parameters: Parameters, repetition: int, data: str) -> list[str]:
        """The probe's arguments for one cell; ``data`` is the file's path in the guest."""
        argv = [part.format(data=data, fraction=parameters.fraction, repetition=repetition) for part in self.argv]
        for name, value in cell.axes:
            argv += [f"--{name}", str(value)]
        return argv

# SPDX-License-Identifier: GPL-2.0-only
"""Whether the model says what kernels do: its figures beside theirs, for the very same measurements."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from foliolab.analyse.rows import ordered
from foliolab.analyse.select import Group, by_repetition
from foliolab.campaign.sample import MODEL, Sample
from foliolab.experiment.cell import Cell
from foliolab.experiment.spec import Experiment

_Place = tuple[Cell, str]


@dataclass(frozen=True)
class AgreementFigure:
    """A metric by both: medians over the repetitions that both have."""

    model: float
    kernel: float
    tolerance: float
    """Share of the kernel's figure."""

    @property
    def difference(self) -> float | None:
        """As a share of the kernel's figure; None if that is 0 and the model's is not."""
        if self.model == self.kernel:
            return 0.0
        return self.model / self.kernel - 1 if self.kernel else None

    @property
    def within(self) -> bool:
        return self.difference is not None and abs(self.difference) <= self.tolerance


@dataclass(frozen=True)
class AgreementRow:
    cell: Cell
    variant: str
    n: int
    """Repetitions that both have."""
    figures: Mapping[str, AgreementFigure]
    """By metric, in the experiment's order."""


@dataclass(frozen=True)
class Agreement:
    """The model beside one table of a kernel."""

    model: Group
    kernel: Group
    metrics: tuple[str, ...]
    rows: tuple[AgreementRow, ...]

    @property
    def figures(self) -> list[tuple[AgreementRow, str, AgreementFigure]]:
        """All of them, each with its row and its metric."""
        return [(row, name, figure) for row in self.rows for name, figure in row.figures.items()]

    @property
    def beyond(self) -> list[tuple[AgreementRow, str, AgreementFigure]]:
        """Those that differ by more than they may."""
        return [place for place in self.figures if not place[2].within]


def compare(groups: Iterable[Group], experiments: Mapping[str, Experiment]) -> list[Agreement]:
    """All comparisons that have rows. The experiment says which metrics have to agree, the parameters must be equal."""
    known = list(groups)
    comparisons = []
    for model in (group for group in known if group.backend == MODEL):
        experiment = experiments.get(model.experiment)
        if not experiment or not experiment.agreement:
            continue
        for kernel in known:
            if kernel.backend != MODEL and _place(kernel) == _place(model):
                rows = tuple(_rows(model, kernel, experiment))
                if rows:
                    comparisons.append(Agreement(model, kernel, tuple(experiment.agreement), rows))
    return comparisons


def _place(group: Group) -> tuple[object, ...]:
    """What model and kernel share where they can be compared. All samples of a group have the same parameters."""
    parameters = group.samples[0].parameters
    return group.experiment, group.scale, group.arch, group.page_size, group.profile, parameters


def _rows(model: Group, kernel: Group, experiment: Experiment) -> Iterable[AgreementRow]:
    ours, theirs = _measured(model), _measured(kernel)
    both = [place for place in theirs if place in ours]
    scale = experiment.scales.get(model.scale)
    variants = ordered((name for _, name in both), [variant.name for variant in scale.variants] if scale else ())
    for cell in ordered((cell for cell, _ in both), scale.cells if scale else ()):
        for name in variants:
            mine, others = ours.get((cell, name), {}), theirs.get((cell, name), {})
            repetitions = sorted(mine.keys() & others.keys())
            figures = {
                metric: AgreementFigure(
                    median(mine[repetition].metrics[metric] for repetition in repetitions),
                    median(others[repetition].metrics[metric] for repetition in repetitions),
                    tolerance,
                )
                for metric, tolerance in experiment.agreement.items()
                if repetitions
                and all(metric in side[repetition].metrics for side in (mine, others) for repetition in repetitions)
            }
            if figures:
                yield AgreementRow(cell, name, len(repetitions), figures)


def _measured(group: Group) -> dict[_Place, dict[int, Sample]]:
    """What was measured, by cell and variant and then by repetition, which is the seed."""
    measured = {place: by_repetition(samples) for place, samples in group.places.items()}
    return {place: samples for place, samples in measured.items() if samples}

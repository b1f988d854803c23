# SPDX-License-Identifier: GPL-2.0-only
"""Whether the model says what kernels do: its figures beside theirs, for the very same measurements."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from foliolab.analyse.rows import Group, by_repetition, in_order
from foliolab.campaign.sample import MODEL
from foliolab.experiment.cell import Cell
from foliolab.experiment.spec import Experiment
from foliolab.grouped import grouped


@dataclass(frozen=True)
class AgreementFigure:
    """A metric of a cell and variant by both: medians over the repetitions that both have."""

    cell: Cell
    variant: str
    n: int
    metric: str
    model: float
    kernel: float
    tolerance: float
    """Share of the kernel's figure."""

    @property
    def difference(self) -> float | None:
        return apart(self.model, self.kernel)

    @property
    def within(self) -> bool:
        return self.difference is not None and abs(self.difference) <= self.tolerance


def apart(model: float, kernel: float) -> float | None:
    """How far the model is from the kernel, as a share of the kernel's figure; None if only that is 0."""
    if model == kernel:
        return 0.0
    return model / kernel - 1 if kernel else None


@dataclass(frozen=True)
class Agreement:
    """The model beside one table of a kernel."""

    model: Group
    kernel: Group
    metrics: tuple[str, ...]
    figures: tuple[AgreementFigure, ...]
    """Cell by cell, in the experiment's order."""

    @property
    def rows(self) -> list[dict[str, AgreementFigure]]:
        """By metric, for each cell and variant."""
        places = grouped(self.figures, lambda figure: (figure.cell, figure.variant)).values()
        return [{figure.metric: figure for figure in figures} for figures in places]

    @property
    def beyond(self) -> list[AgreementFigure]:
        return [figure for figure in self.figures if not figure.within]


def compare(groups: Iterable[Group], experiments: Mapping[str, Experiment]) -> list[Agreement]:
    """All comparisons with figures. The experiment says which metrics have to agree, the parameters must be equal."""
    known = list(groups)
    comparisons = []
    for model in (group for group in known if group.backend == MODEL):
        experiment = experiments.get(model.experiment)
        if not experiment or not experiment.agreement:
            continue
        for kernel in known:
            alike = kernel.backend != MODEL and _place(kernel) == _place(model)
            if alike and (figures := tuple(_figures(model, kernel, experiment))):
                comparisons.append(Agreement(model, kernel, tuple(experiment.agreement), figures))
    return comparisons


def _place(group: Group) -> tuple[object, ...]:
    """What model and kernel share where they can be compared. All samples of a group have the same parameters."""
    parameters = group.samples[0].parameters
    return group.experiment, group.scale, group.page_size, group.profile, parameters


def _figures(model: Group, kernel: Group, experiment: Experiment) -> Iterator[AgreementFigure]:
    by_model, by_kernel = model.places, kernel.places
    both = [place for place in by_kernel if place in by_model]
    for cell, name in in_order(both, experiment.scales.get(model.scale)):
        # The repetition is the seed.
        found = [by_repetition(places[cell, name]) for places in (by_model, by_kernel)]
        repetitions = sorted(found[0].keys() & found[1].keys())
        sides = [[side[number].metrics for number in repetitions] for side in found]
        for metric, tolerance in experiment.agreement.items():
            if repetitions and all(metric in metrics for side in sides for metrics in side):
                ours, theirs = (median(metrics[metric] for metrics in side) for side in sides)
                yield AgreementFigure(cell, name, len(repetitions), metric, ours, theirs, tolerance)

# SPDX-License-Identifier: GPL-2.0-only
"""What differs between a variant and the baseline, figure by figure, and whether boots show it.

A loss is a difference in the direction that is worse for the metric, as a share of the baseline. It counts where it is
above a threshold and not negligible, and either is the same in every boot, or more than chance does to one of all
figures that are compared (``foliolab.analyse.paired``). Where seeds matter to it, boots of other seeds are chance, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, median

from foliolab.analyse.paired import CHANCE, boots_needed, corrected, shift
from foliolab.analyse.rows import Group, by_repetition
from foliolab.arch import Bytes
from foliolab.campaign.sample import NOT_APPLICABLE, Sample
from foliolab.experiment.cell import Cell
from foliolab.experiment.metrics import METRICS, figure
from foliolab.experiment.spec import Experiment

NOT_MEASURED = "not-measured"
NOT_COUNTED = "not-counted"
"""Outcomes besides those of samples: there is no sample, or it lacks a metric."""

_AXIS = "workload"


class Change(StrEnum):
    """In the order in which tables have them."""

    WORSE = "worse"
    SUSPECTED = "suspected"
    """The estimate is a loss that counts, and more boots may show it: chance seldom does so much to it by itself, or
    these agree as well as so few can."""
    NOT_SHOWN = "not shown"
    """Neither that there is a difference nor that there is none that counts."""
    SAME = "same"
    """If there is a difference, none that counts."""
    BETTER = "better"


@dataclass(frozen=True)
class MatrixPart:
    experiment: Experiment
    scale: str
    arch: str
    page_size: Bytes
    cells: tuple[Cell, ...]
    variants: tuple[str, ...]
    """To be compared with the baseline, which is none of them."""
    group: Group | None
    """Where their samples are; None if nothing was measured."""

    def gap(self, cell: Cell, variant: str, outcome: str, sentence: str) -> "Gap":
        return Gap(self.experiment.name, cell, workload_name(self.experiment, cell), variant, outcome, sentence)


@dataclass(frozen=True)
class Difference:
    """One metric of a workload under a variant and under the baseline, over the repetitions that both have."""

    experiment: str
    cell: Cell
    workload: str
    variant: str
    metric: str
    baseline: float
    """Median, as is ``value``."""
    value: float
    loss: float
    """As a share of the baseline, or of what is negligible where that is more. Gains are negative."""
    mean: float
    """Of what pairs lose: what few of them lose is no part of ``loss``."""
    interval: tuple[float, float] | None
    """Of 95 % for the loss, by itself; the loss if the figure repeats; None if boots are too few."""
    negligible: float
    """What a loss has to come to, as such a share."""
    repeats: bool
    """Whether several boots lose the same, of a baseline that has one figure a seed: more of them will tell no more."""
    p: float | None
    """How often chance alone would go as far, by itself; None if the figure repeats."""
    n: int
    p_corrected: float | None = None
    """The same for one of all figures that are compared."""
    change: Change = Change.NOT_SHOWN

    @property
    def rank(self) -> tuple[int, float]:
        """A sort key: the greatest loss comes first."""
        return list(Change).index(self.change), -self.loss

    @property
    def smallest_visible(self) -> float | None:
        """How far from the loss the interval ends, which is by itself; None if there is no interval."""
        return self.interval and max(self.loss - self.interval[0], self.interval[1] - self.loss)

    def counts(self, loss: float, threshold: float) -> bool:
        """Whether so much would be of account here, be it a loss or a gain."""
        return abs(loss) > threshold and abs(loss) >= self.negligible


@dataclass(frozen=True)
class Gap:
    """What cannot be compared."""

    experiment: str
    cell: Cell
    workload: str
    variant: str
    outcome: str
    sentence: str

    @property
    def failed(self) -> bool:
        """Whether a measurement is missing that this machine could have had."""
        return self.outcome not in (NOT_APPLICABLE, NOT_COUNTED)


def workload_name(experiment: Experiment, cell: Cell) -> str:
    """The cell in words without commas, after the experiment's name unless the cell itself names a workload."""
    words = cell.label.replace(", ", " ")
    return words if _AXIS in cell.as_dict() else f"{experiment.name} {words}"


def compare(
    part: MatrixPart,
    cell: Cell,
    variant: str,
    baseline: Sequence[Sample],
    mine: Sequence[Sample],
    again: Sequence[Sample],
) -> Iterator[Difference | Gap]:
    """The variant's figures beside the baseline's, which ``again`` has a second time."""
    arms = [by_repetition(samples) for samples in (baseline, mine, again)]
    repetitions = sorted(arms[0].keys() & arms[1].keys())
    if arms[0] and arms[1] and not repetitions:
        yield part.gap(cell, variant, NOT_MEASURED, "The baseline has other repetitions only.")
    if not repetitions:
        return
    for metric in part.experiment.compared:
        base, values, twice = (_figures(arm, metric) for arm in arms)
        if both := [number for number in repetitions if number in base and number in values]:
            figures = [base[number] for number in both], [values[number] for number in both]
            yield _difference(part, cell, variant, metric, *figures, [twice.get(number) for number in both])
        else:
            outcome = NOT_MEASURED if base.keys() & set(repetitions) else NOT_COUNTED
            yield part.gap(cell, variant, outcome, f"{metric} is missing.")


def _figures(samples: Mapping[int, Sample], metric: str) -> dict[int, float]:
    """By repetition, of those that counted the metric."""
    found = {number: figure(sample.metrics, metric) for number, sample in samples.items()}
    return {number: value for number, value in found.items() if value is not None}


def _difference(
    part: MatrixPart,
    cell: Cell,
    variant: str,
    metric: str,
    baseline: Sequence[float],
    values: Sequence[float],
    again: Sequence[float | None],
) -> Difference:
    """Each has a figure for each repetition, which is the seed of all; ``again`` those of them that it has."""
    kind = METRICS[metric]
    before = median(baseline)
    unit = max(before, kind.negligible) * (-1 if kind.more_is_better else 1)
    losses = [(mine - base) / unit + 0.0 for base, mine in zip(baseline, values, strict=True)]  # never -0.0
    found = shift(losses)
    if not kind.more_is_better:  # nothing can be less than nothing
        interval = found.interval and (max(found.interval[0], -1.0), max(found.interval[1], -1.0))
        found = replace(found, estimate=max(found.estimate, -1.0), interval=interval)
    repeats = len(losses) > 1 and len(set(losses)) == 1 and _repeats(baseline, again)
    return Difference(
        experiment=part.experiment.name,
        cell=cell,
        workload=workload_name(part.experiment, cell),
        variant=variant,
        metric=metric,
        baseline=before,
        value=median(values),
        loss=found.estimate,
        mean=fmean(losses),
        interval=(found.estimate, found.estimate) if repeats else found.interval,
        negligible=kind.negligible / abs(unit),
        repeats=repeats,
        p=None if repeats else found.p,
        n=len(losses),
    )


def _repeats(baseline: Sequence[float], again: Sequence[float | None]) -> bool:
    """Whether two boots of the baseline with one seed always have one figure, or all of its boots have one.

    If those of the baseline do, those of the variant are taken to do so as well.
    """
    return list(baseline) == list(again) or len({*baseline, *(each for each in again if each is not None)}) == 1


def judged(differences: Iterable[Difference], threshold: float) -> list[Difference]:
    """What all of them come to, what loses most first. Those that repeat leave nothing to chance."""
    all_ = list(differences)
    chances = iter(corrected([each.p for each in all_ if each.p is not None]))
    found = [replace(each, p_corrected=None if each.p is None else next(chances)) for each in all_]
    changed = (replace(each, change=_change(each, threshold)) for each in found)
    return sorted(changed, key=lambda each: each.rank)


def needed_for(differences: Iterable[Difference]) -> int:
    return boots_needed(sum(not each.repeats for each in differences))


def _change(difference: Difference, threshold: float) -> Change:
    """What may be said of a difference, once it is known what chance does to all."""
    counts = difference.counts(difference.loss, threshold)
    if counts and (difference.p_corrected or 0) <= CHANCE:
        return Change.WORSE if difference.loss > 0 else Change.BETTER
    # Of five boots or fewer all have to go one way, which chance does at least so often.
    clear = max(CHANCE, 2.0 ** (1 - difference.n))
    if counts and difference.loss > 0 and (difference.p or 0) <= clear:
        return Change.SUSPECTED
    # One boot of twelve with nine times the faults leaves the interval as it is, and moves the mean.
    ends = difference.interval and (*difference.interval, difference.mean)
    if ends and not any(difference.counts(end, threshold) for end in ends):
        return Change.SAME
    return Change.NOT_SHOWN

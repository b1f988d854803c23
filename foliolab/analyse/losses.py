# SPDX-License-Identifier: GPL-2.0-only
"""Which workloads get worse: every metric under each variant, beside the same under a baseline.

A loss is a difference in the direction that is worse for the metric, as a share of the baseline. It counts where
it is above a threshold and not negligible, and so many repetitions go the same way that chance seldom does that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb
from statistics import median

from foliolab.analyse.select import Group
from foliolab.campaign.sample import NOT_APPLICABLE, OK, Sample
from foliolab.experiment.cell import Cell
from foliolab.experiment.metrics import METRICS, figure
from foliolab.experiment.spec import Experiment

NOT_MEASURED = "not-measured"
NOT_COUNTED = "not-counted"
"""Outcomes besides those of samples: there is no sample, or it lacks a metric."""

_CHANCE = 1 / 8
"""How likely chance alone may be to make so many repetitions go the same way: as likely as three of three."""

_AXIS = "workload"
_Taken = Mapping[tuple[Cell, str], Sequence[Sample]]


class Change(StrEnum):
    """In the order in which tables have them."""

    WORSE = "worse"
    SAME = "same"
    BETTER = "better"


@dataclass(frozen=True)
class Part:
    """What one experiment contributes."""

    experiment: Experiment
    scale: str
    arch: str
    page_size: int
    """Bytes."""
    cells: tuple[Cell, ...]
    variants: tuple[str, ...]
    """To be compared with the baseline, which is none of them."""
    group: Group | None
    """Where their samples are; None if nothing was measured."""


@dataclass(frozen=True)
class Difference:
    """One metric of a workload under a variant and under the baseline: medians over the repetitions that both have."""

    experiment: str
    cell: Cell
    workload: str
    variant: str
    metric: str
    baseline: float
    value: float
    loss: float
    """As a share of the baseline, or of what is negligible where that is more. Gains are negative."""
    change: Change
    n: int
    """Repetitions that both have."""
    agreeing: int
    """How many of them are worse, if there is a loss, or better, if there is a gain; 0 if there is neither."""


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


@dataclass(frozen=True)
class Pair:
    """A workload under a variant."""

    deciding: Difference
    """The greatest loss that counts, else the greatest gain that counts, else whatever is worst."""
    gain: Difference | None
    """The greatest one that counts."""


@dataclass(frozen=True)
class VariantSummary:
    variant: str
    workloads: int
    """That were compared."""
    worse: tuple[Pair, ...]
    """The greatest loss first."""
    better: tuple[Pair, ...]
    """Those that lose nothing, the greatest gain first."""
    missing: int
    """Workloads of which a measurement under the variant or the baseline failed, or is not there."""


@dataclass(frozen=True)
class Matrix:
    parts: tuple[Part, ...]
    baseline: str
    """The variant that the others are compared with."""
    variants: tuple[str, ...]
    """All others."""
    threshold: float
    """The share above which a loss counts."""
    differences: tuple[Difference, ...]
    """What loses most first."""
    gaps: tuple[Gap, ...]


def workload_name(experiment: Experiment, cell: Cell) -> str:
    """The cell in words without commas, after the experiment's name unless the cell itself names a workload."""
    words = cell.label.replace(", ", " ")
    return words if _AXIS in cell.as_dict() else f"{experiment.name} {words}"


def make_matrix(parts: Sequence[Part], *, baseline: str, threshold: float) -> Matrix:
    """Compare every variant of every part with the baseline."""
    differences: list[Difference] = []
    gaps: list[Gap] = []
    for part in parts:
        taken = _taken(part)
        for cell in part.cells:
            base = taken.get((cell, baseline), ())
            gaps += _gaps(part, cell, baseline, base)
            for variant in part.variants:
                mine = taken.get((cell, variant), ())
                gaps += _gaps(part, cell, variant, mine)
                for found in _compare(part, cell, variant, (base, mine), threshold):
                    if isinstance(found, Gap):
                        gaps.append(found)
                    else:
                        differences.append(found)
    return Matrix(
        parts=tuple(parts),
        baseline=baseline,
        variants=tuple(dict.fromkeys(variant for part in parts for variant in part.variants)),
        threshold=threshold,
        differences=tuple(sorted(differences, key=_rank)),
        gaps=tuple(gaps),
    )


def make_pairs(matrix: Matrix) -> list[Pair]:
    """Every workload under every variant, what loses most first."""
    members: dict[tuple[str, Cell, str], list[Difference]] = {}
    for each in matrix.differences:
        members.setdefault((each.experiment, each.cell, each.variant), []).append(each)
    pairs = []
    for differences in members.values():
        worst = differences[0]
        gains = [each for each in differences if each.change is Change.BETTER]
        gain = min(gains, key=lambda each: each.loss) if gains else None
        pairs.append(Pair(worst if worst.change is Change.WORSE or not gain else gain, gain))
    return sorted(pairs, key=lambda pair: _rank(pair.deciding))


def by_variant(matrix: Matrix) -> list[VariantSummary]:
    pairs = make_pairs(matrix)
    summaries = []
    for variant in matrix.variants:
        mine = [pair for pair in pairs if pair.deciding.variant == variant]
        gaps = [gap for gap in matrix.gaps if gap.failed and gap.variant in (variant, matrix.baseline)]
        summaries.append(
            VariantSummary(
                variant=variant,
                workloads=len(mine),
                worse=tuple(pair for pair in mine if pair.deciding.change is Change.WORSE),
                better=tuple(pair for pair in reversed(mine) if pair.deciding.change is Change.BETTER),
                missing=len({(gap.experiment, gap.cell) for gap in gaps}),
            )
        )
    return summaries


def _taken(part: Part) -> _Taken:
    taken: dict[tuple[Cell, str], list[Sample]] = {}
    for sample in part.group.samples if part.group else ():
        taken.setdefault((Cell.of(sample.cell), sample.variant), []).append(sample)
    return taken


def _gaps(part: Part, cell: Cell, variant: str, samples: Sequence[Sample]) -> Iterator[Gap]:
    """What failed, or that nothing was tried."""
    if not samples:
        yield _gap(part, cell, variant, NOT_MEASURED, "")
    failures = {(sample.outcome, sample.sentence) for sample in samples if sample.outcome != OK}
    for outcome, sentence in sorted(failures):
        yield _gap(part, cell, variant, outcome, sentence)


def _gap(part: Part, cell: Cell, variant: str, outcome: str, sentence: str) -> Gap:
    return Gap(part.experiment.name, cell, workload_name(part.experiment, cell), variant, outcome, sentence)


def _compare(
    part: Part, cell: Cell, variant: str, samples: tuple[Sequence[Sample], Sequence[Sample]], threshold: float
) -> Iterator[Difference | Gap]:
    """The variant's figures beside the baseline's; ``samples`` has the baseline's first."""
    base, mine = (_by_repetition(some) for some in samples)
    repetitions = sorted(base.keys() & mine.keys())
    if base and mine and not repetitions:
        yield _gap(part, cell, variant, NOT_MEASURED, "The baseline has other repetitions only.")
    if not repetitions:
        return
    for metric in part.experiment.regress:
        pairs = [(figure(base[number].metrics, metric), figure(mine[number].metrics, metric)) for number in repetitions]
        both = [(before, after) for before, after in pairs if before is not None and after is not None]
        if not both:
            counted = any(before is not None for before, _ in pairs)
            outcome = NOT_MEASURED if counted else NOT_COUNTED
            yield _gap(part, cell, variant, outcome, f"{metric} is missing.")
            continue
        yield _difference(part, cell, variant, metric, both, threshold)


def _by_repetition(samples: Iterable[Sample]) -> dict[int, Sample]:
    return {sample.repetition: sample for sample in samples if sample.outcome == OK}


def _difference(
    part: Part, cell: Cell, variant: str, metric: str, both: Sequence[tuple[float, float]], threshold: float
) -> Difference:
    """``both`` has the baseline's figure and the variant's of each repetition, which is the seed of both."""
    kind = METRICS[metric]
    sign = -1 if kind.more_is_better else 1
    before, after = (median(values) for values in zip(*both, strict=True))
    loss = sign * (after - before) / max(before, kind.negligible)
    agreeing = sum(loss * sign * (mine - base) > 0 for base, mine in both)
    change = Change.SAME
    if abs(loss) > threshold and abs(after - before) >= kind.negligible and _agree(agreeing, len(both)):
        change = Change.WORSE if loss > 0 else Change.BETTER
    return Difference(
        experiment=part.experiment.name,
        cell=cell,
        workload=workload_name(part.experiment, cell),
        variant=variant,
        metric=metric,
        baseline=before,
        value=after,
        loss=loss + 0.0,  # never -0.0
        change=change,
        n=len(both),
        agreeing=agreeing,
    )


def _agree(number: int, repetitions: int) -> bool:
    """The sign test: all of up to five repetitions, five of six, seven of nine, nineteen of thirty."""
    outcomes = sum(comb(repetitions, more) for more in range(number, repetitions + 1))
    return number == repetitions or outcomes <= _CHANCE * 2**repetitions


def _rank(difference: Difference) -> tuple[int, float]:
    return list(Change).index(difference.change), -difference.loss

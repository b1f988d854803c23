# SPDX-License-Identifier: GPL-2.0-only
"""Which workloads get worse: every metric under each variant, beside the same under a baseline.

The baseline is measured twice, and compared with itself as well: what differs there is chance.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from foliolab.analyse.differences import NOT_MEASURED, Change, Difference, Gap, MatrixPart, compare, judged, needed_for
from foliolab.analyse.paired import CHANCE
from foliolab.campaign.sample import OK, Sample
from foliolab.experiment.cell import Cell
from foliolab.experiment.variants import again_name
from foliolab.grouped import grouped

_THRESHOLD = 0.02


@dataclass(frozen=True)
class Pair:
    """A workload under a variant."""

    deciding: Difference
    """The greatest loss that counts, else the greatest gain that counts, else a loss as large that was not shown, else
    the experiment's main metric, or the first of its list that counted anything."""
    gain: Difference | None
    """The greatest one that counts."""


@dataclass(frozen=True)
class VariantSummary:
    variant: str
    workloads: int
    worse: tuple[Pair, ...]
    """The greatest loss first."""
    suspected: tuple[Pair, ...]
    better: tuple[Pair, ...]
    """Those that lose nothing, the greatest gain first."""
    unknown: int
    """Figures of which neither is shown that they differ nor that they do not."""
    missing: int
    """Workloads of which a measurement under the variant or the baseline failed, or is not there."""


@dataclass(frozen=True)
class Matrix:
    parts: tuple[MatrixPart, ...]
    baseline: str
    variants: tuple[str, ...]
    threshold: float
    """The share above which a loss counts."""
    differences: tuple[Difference, ...]
    """What loses most first."""
    again: tuple[Difference, ...]
    """The baseline beside itself, in boots of their own; empty if it was not measured twice."""
    gaps: tuple[Gap, ...]

    @property
    def boots_needed(self) -> int:
        """How many boots of each can show a difference in one figure alone of those that do not repeat."""
        return needed_for(self.differences)


def make_matrix(parts: Sequence[MatrixPart], *, baseline: str, threshold: float = _THRESHOLD) -> Matrix:
    """Compare every variant of every part with the baseline."""
    second = again_name(baseline)
    found: list[Difference | Gap] = []
    twice: list[Difference | Gap] = []
    for part in parts:
        taken = part.group.places if part.group else {}
        for cell in part.cells:
            base, again = (taken.get((cell, name), ()) for name in (baseline, second))
            found += _gaps(part, cell, baseline, base)
            if again:
                found += _gaps(part, cell, second, again)
                twice += compare(part, cell, second, base, again, again)
            for variant in part.variants:
                mine = taken.get((cell, variant), ())
                found += _gaps(part, cell, variant, mine)
                found += compare(part, cell, variant, base, mine, again)
    return Matrix(
        parts=tuple(parts),
        baseline=baseline,
        variants=tuple(dict.fromkeys(variant for part in parts for variant in part.variants)),
        threshold=threshold,
        differences=tuple(judged((each for each in found if isinstance(each, Difference)), threshold)),
        again=tuple(judged((each for each in twice if isinstance(each, Difference)), threshold)),
        gaps=tuple(each for each in found if isinstance(each, Gap)),
    )


def make_pairs(matrix: Matrix) -> list[Pair]:
    """Every workload under every variant, what loses most first."""
    pairs = []
    places = grouped(matrix.differences, lambda each: (each.experiment, each.cell, each.variant))
    for differences in places.values():
        gains = [each for each in differences if each.change is Change.BETTER]
        gain = min(gains, key=lambda each: each.loss) if gains else None
        pairs.append(Pair(_deciding(matrix, differences, gain), gain))
    return sorted(pairs, key=lambda pair: pair.deciding.rank)


def _deciding(matrix: Matrix, differences: Sequence[Difference], gain: Difference | None) -> Difference:
    """The figure that stands for a workload; ``differences`` has what loses most first."""
    worst = differences[0]
    if worst.change in (Change.WORSE, Change.SUSPECTED):
        return worst
    if gain:
        return gain
    if worst.loss > matrix.threshold:  # it was not shown, or is of no account
        return worst
    experiment = next(part.experiment for part in matrix.parts if part.experiment.name == worst.experiment)
    order = (experiment.metric, *experiment.compared)
    return min(differences, key=lambda each: (each.baseline == each.value == 0, order.index(each.metric)))


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
                suspected=tuple(pair for pair in mine if pair.deciding.change is Change.SUSPECTED),
                better=tuple(pair for pair in reversed(mine) if pair.deciding.change is Change.BETTER),
                unknown=sum(each.variant == variant and each.change is Change.NOT_SHOWN for each in matrix.differences),
                missing=len({(gap.experiment, gap.cell) for gap in gaps}),
            )
        )
    return summaries


def _gaps(part: MatrixPart, cell: Cell, variant: str, samples: Sequence[Sample]) -> Iterator[Gap]:
    """What failed, or that nothing was tried."""
    if not samples:
        yield part.gap(cell, variant, NOT_MEASURED, "")
    failures = {(sample.outcome, sample.sentence) for sample in samples if sample.outcome != OK}
    for outcome, sentence in sorted(failures):
        yield part.gap(cell, variant, outcome, sentence)


def by_chance(again: Iterable[Difference]) -> tuple[int, int]:
    """How many figures vary, in boots enough to tell anything, and how many of these differ, each judged by itself."""
    found = [each.p for each in again if each.p is not None and each.interval]
    return len(found), sum(p <= CHANCE for p in found)

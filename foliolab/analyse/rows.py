# SPDX-License-Identifier: GPL-2.0-only
"""The figures of a table: medians, spreads and ratios, one row a cell and variant."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from foliolab.analyse.select import Group
from foliolab.campaign.sample import OK, Sample
from foliolab.experiment.cell import Cell
from foliolab.experiment.spec import Experiment, Scale

BASES = ("unpatched", "off")
"""What the others are compared with: the first of these that was measured, or else the first kernel as it boots."""

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Spread:
    """A metric over the boots, or runs of the model, that measured it."""

    median: float
    least: float
    most: float


@dataclass(frozen=True)
class Row:
    cell: Cell
    variant: str
    n: int
    """Boots that measured it."""
    failures: Mapping[str, int]
    """How often it ended otherwise, by outcome."""
    metrics: Mapping[str, Spread]
    """Empty if n is 0."""
    times_floor: float | None = None
    """Median of the experiment's metric over the median of its floor."""
    ratio: float | None = None
    """Median of the experiment's metric over that of ``ratio_to`` in the same cell."""
    ratio_to: str | None = None
    published: Mapping[str, float] = field(default_factory=dict)
    """Published values by metric, times the scale's factor where the metric scales."""


def make_rows(group: Group, experiment: Experiment | None) -> list[Row]:
    """Rows in the experiment's order of cells and variants; without its file in order of appearance."""
    metric = experiment.metric if experiment else "read_bytes"
    floor = experiment.floor if experiment else "floor_bytes"
    taken = group.places
    spreads = {place: _spreads(samples) for place, samples in taken.items()}
    scale = experiment.scales.get(group.scale) if experiment else None
    booted = dict.fromkeys(sample.variant for sample in group.samples if sample.variant == sample.kernel.name)
    rows = []
    for cell, name in in_order(taken, scale):
        mine = spreads[cell, name]
        base = next((base for base in (*BASES, *booted) if metric in spreads.get((cell, base), {})), None)
        outcomes = Counter(sample.outcome for sample in taken[cell, name])
        n = outcomes.pop(OK, 0)
        published = experiment.published_for(scale, name, cell, group.machine) if experiment and scale else {}
        rows.append(
            Row(
                cell=cell,
                variant=name,
                n=n,
                failures=dict(outcomes),
                metrics=mine,
                times_floor=_quotient(mine.get(metric), mine.get(floor)) if floor else None,
                ratio=_quotient(mine.get(metric), spreads[cell, base].get(metric)) if base else None,
                ratio_to=base,
                published=published,
            )
        )
    return rows


def in_order(places: Collection[tuple[Cell, str]], scale: Scale | None) -> list[tuple[Cell, str]]:
    """Cells with variants in the order of the scale; others, or without one, in that of appearance."""
    cells = ordered((cell for cell, _ in places), scale.cells if scale else ())
    variants = ordered((name for _, name in places), [variant.name for variant in scale.variants] if scale else ())
    return [(cell, name) for cell in cells for name in variants if (cell, name) in places]


def _spreads(samples: Iterable[Sample]) -> dict[str, Spread]:
    values: dict[str, list[float]] = {}
    for sample in samples:
        if sample.outcome == OK:
            for name, value in sample.metrics.items():
                values.setdefault(name, []).append(value)
    return {name: Spread(median(all_), min(all_), max(all_)) for name, all_ in values.items()}


def _quotient(upper: Spread | None, lower: Spread | None) -> float | None:
    return upper.median / lower.median if upper and lower and lower.median else None


def ordered(seen: Iterable[_Item], wanted: Iterable[_Item]) -> list[_Item]:
    """What was seen, each once: first in the order that is wanted, then in that of appearance."""
    present = list(dict.fromkeys(seen))
    first = [item for item in wanted if item in present]
    return first + [item for item in present if item not in first]

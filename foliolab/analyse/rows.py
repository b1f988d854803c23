# SPDX-License-Identifier: GPL-2.0-only
"""Which samples belong into one table, and its figures: medians, spreads and ratios, one row a cell and variant."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

from foliolab.arch import Bytes, machine_name
from foliolab.campaign.sample import LOST_HOST, MODEL, OK, KernelFacts, Sample
from foliolab.experiment.cell import Cell
from foliolab.experiment.spec import Experiment, Scale
from foliolab.grouped import grouped


@dataclass(frozen=True)
class Group:
    """What a table shares. Its samples may be compared with each other."""

    experiment: str
    scale: str
    arch: str
    page_size: Bytes
    backend: str
    profile: str
    timed_on: str
    """The host, where seconds are measured; else empty, and samples are of any."""
    device: str
    """Of which kind disks were that took time; empty if they took none."""
    samples: tuple[Sample, ...]
    """The last attempt at each measurement, oldest first."""
    older: int
    """How many samples of older kernels, switches, probes or parameters were left out."""

    @property
    def machine(self) -> str:
        return machine_name(self.arch, self.page_size)

    @property
    def title(self) -> str:
        kernels = f", {self.profile} kernels" if self.profile != "lab" else ""
        arch = "" if self.backend == MODEL else f"{self.arch} with "
        pages = f"{arch}{self.page_size // 1024} KiB pages"
        host = f" on {self.timed_on}" if self.timed_on else ""
        device = f", device {self.device}" if self.device else ""
        return f"{self.experiment}, scale {self.scale}, {pages}, backend {self.backend}{host}{device}{kernels}"

    def to_json(self) -> dict[str, Any]:
        """What rows of a table for programs begin with."""
        names = ("experiment", "scale", "arch", "page_size", "backend", "timed_on", "device")
        return {name: getattr(self, name) for name in names}

    @property
    def kernels(self) -> dict[str, KernelFacts]:
        """By name."""
        return {sample.kernel.name: sample.kernel for sample in self.samples}

    @property
    def places(self) -> dict[tuple[Cell, str], list[Sample]]:
        """The samples of each cell and variant."""
        return grouped(self.samples, lambda sample: (Cell.of(sample.cell), sample.variant))


def place_of(thing: Sample | Group) -> tuple[str, str, str, int, str, str, str, str]:
    """What tells the group of a sample from all others, also of a Group itself; the timed disk is the last."""
    guest = thing.arch, thing.page_size, thing.backend, thing.profile, thing.timed_on, thing.device
    return thing.experiment, thing.scale, *guest


def by_repetition(samples: Iterable[Sample]) -> dict[int, Sample]:
    """Those that succeeded, by their repetition, which is their seed."""
    return {sample.repetition: sample for sample in samples if sample.outcome == OK}


def group_samples(samples: Iterable[Sample]) -> list[Group]:
    """Sort samples into groups, in order of first appearance."""
    last: dict[str, Sample] = {}
    for sample in samples:
        if sample.outcome == LOST_HOST and sample.key in last:  # a merge may bring it after a result
            continue
        last.pop(sample.key, None)  # keeps the order that of the last attempts
        last[sample.key] = sample
    groups = []
    for place, members in grouped(last.values(), place_of).items():
        current = _newest(members)
        groups.append(Group(*place, tuple(current), len(members) - len(current)))
    return groups


def group_of(sample: Sample, samples: Iterable[Sample]) -> Group:
    """The group of ``samples`` that this one of them belongs to."""
    place = place_of(sample)
    return next(group for group in group_samples(samples) if place_of(group) == place)


def _newest(samples: list[Sample]) -> list[Sample]:
    """Those that share the newest probe and parameters, each cell's newest data, each variant's newest switches and
    name of a kernel, and each such kernel's newest. What was passed over is left out where its cell and variant were
    measured.

    Only what has a result tells what is newest, unless nothing has one.
    """
    decided = [sample for sample in samples if not sample.passed_over and sample.outcome != LOST_HOST] or samples
    newest = setting(decided[-1])
    decided = [sample for sample in decided if setting(sample) == newest]
    data = {Cell.of(sample.cell): sample.data for sample in decided}
    decided = [sample for sample in decided if sample.data == data[Cell.of(sample.cell)]]
    variants = {sample.variant: _meaning(sample) for sample in decided}
    decided = [sample for sample in decided if _meaning(sample) == variants[sample.variant]]
    kernels = {sample.kernel.name: sample.kernel.hash for sample in decided}

    def is_current(sample: Sample) -> bool:
        return (
            setting(sample) == newest
            and (sample.passed_over or sample.data == data.get(Cell.of(sample.cell), sample.data))
            and _meaning(sample) == variants.get(sample.variant, _meaning(sample))
            and sample.kernel.hash == kernels.get(sample.kernel.name, sample.kernel.hash)
        )

    return without_passed_over(filter(is_current, samples))


def _meaning(sample: Sample) -> tuple[dict[str, int | str], str]:
    """What its variant is: switches, and the name of a kernel."""
    return sample.switches, sample.kernel.name


def without_passed_over(samples: Iterable[Sample]) -> list[Sample]:
    """Those that were not passed over, and those whose cell and variant have no others."""
    found = list(samples)
    decided = {(Cell.of(sample.cell), sample.variant) for sample in found if not sample.passed_over}
    return [each for each in found if not each.passed_over or (Cell.of(each.cell), each.variant) not in decided]


def setting(sample: Sample) -> tuple[str, str, str]:
    """Probe and parameters, and the host if seconds are measured."""
    return sample.workload, json.dumps(sample.parameters, sort_keys=True), sample.timed_on


BASES = ("unpatched", "off")
"""What the others are compared with: the first of these that was measured, or else the first kernel as it boots."""

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Spread:
    """A metric over the boots, or runs of the model, that measured it."""

    each: Mapping[int, float]
    """By repetition; there is at least one."""

    @property
    def median(self) -> float:
        return median(self.each.values())

    @property
    def least(self) -> float:
        return min(self.each.values())

    @property
    def most(self) -> float:
        return max(self.each.values())

    def to_json(self) -> dict[str, float]:
        return {"median": self.median, "least": self.least, "most": self.most}


def pairs(one: Spread, other: Spread) -> list[tuple[float, float]]:
    """Of both, for each repetition that both have, which is a seed."""
    return [(one.each[number], other.each[number]) for number in one.each.keys() & other.each.keys()]


def paired_medians(one: Spread | None, other: Spread | None) -> tuple[float, float] | None:
    """Of both, over their ``pairs``; None if there are none."""
    found = pairs(one, other) if one and other else []
    if not found:
        return None
    ones, others = zip(*found, strict=True)
    return median(ones), median(others)


def quotient(upper: Spread | None, lower: Spread | None) -> float | None:
    """One of these medians over the other; None if there are none, or the lower is 0."""
    above, below = paired_medians(upper, lower) or (0.0, 0.0)
    return above / below if below else None


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
    """Median of the experiment's metric over the median of its floor, as ``quotient`` has it."""
    ratio: float | None = None
    """The same over that of ``ratio_to`` in the same cell."""
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
                times_floor=quotient(mine.get(metric), mine.get(floor)) if floor else None,
                ratio=quotient(mine.get(metric), spreads[cell, base].get(metric)) if base else None,
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
    values: dict[str, dict[int, float]] = {}
    for number, sample in by_repetition(samples).items():
        for name, value in sample.metrics.items():
            values.setdefault(name, {})[number] = value
    return {name: Spread(each) for name, each in values.items()}


def ordered(seen: Iterable[_Item], wanted: Iterable[_Item]) -> list[_Item]:
    """What was seen, each once: first in the order that is wanted, then in that of appearance."""
    present = list(dict.fromkeys(seen))
    first = [item for item in wanted if item in present]
    return first + [item for item in present if item not in first]

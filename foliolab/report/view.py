# SPDX-License-Identifier: GPL-2.0-only
"""Everything that is said about one group of samples, ready to be laid out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from foliolab.analyse.agreement import Agreement, compare
from foliolab.analyse.expected import Verdict, judge
from foliolab.analyse.rows import Group, Row, group_samples, make_rows, place_of
from foliolab.campaign.measure import Collected
from foliolab.campaign.sample import MODEL, NOT_APPLICABLE, OK, KernelFacts, Sample
from foliolab.device import Device, device_of
from foliolab.experiment.cell import Cell
from foliolab.experiment.spec import Experiment
from foliolab.vm.accel import ICOUNT, TCG
from foliolab.vm.counted import HARDWARE, NOT_COUNTED

_EMULATED = {
    TCG: f"Emulated ({TCG}): the counts are real, the seconds say nothing about a real machine.",
    ICOUNT: f"Emulated ({ICOUNT}): million instructions are of the whole program; seconds mean nothing.",
}

MODELLED = (
    "Modelled: no kernel was booted, read requests are contiguous ranges that no device splits, and the kernel named "
    "below is a hash of the policy that the model compiles."
)

TIMELESS = "Nothing takes time in the model."

_MOST_PERCENT = 1000
"""Of what boots differ by; more is told in times."""


def timeless(group: Group) -> bool:
    """Whether it took a time that says nothing."""
    return group.backend in _EMULATED and not group.device


def time_remark(group: Group) -> str:
    """What its seconds are, as a sentence; empty where they are those of a clock."""
    if group.device:
        return _timed(device_of(group.device))
    return _EMULATED.get(group.backend, "")


def _timed(device: Device) -> str:
    latency = "a seek" if device.queue_depth == 1 else "a request"
    rate = f", {device.requests_per_second:,} requests/s" if device.requests_per_second else ""
    return (
        f"Seconds are virtual: {latency} takes {device.latency_us:,} us, data pass at {device.megabytes_per_second:,}"
        f" MB/s{rate}, {device.queue_depth} requests are in work at a time, and an instruction takes a nanosecond."
    )


ShownPlaces = Iterable[tuple[Cell, str]]
"""The cells of a table, with their variants."""
MadeBy = Callable[[Group, ShownPlaces], str]
"""The command that measures what a table shows of a group; empty if none does."""


def origin(group: Group, counts: Iterable[int], command: str) -> str:
    """Below a table of a document: how often its rows were measured, of which kernels, and by which command."""
    ordered = sorted(counts)
    boots = " to ".join(dict.fromkeys(map(str, (ordered[0], ordered[-1])))) if ordered else "0"
    hashes = ", ".join(f"{name} `{kernel.hash}`" for name, kernel in group.kernels.items())
    by = f": `{command}`" if command else ""
    where = ", ".join(filter(None, (group.backend, group.machine, group.device)))
    return f"n = {boots}, {where}, scale {group.scale}, {hashes}{by}."


@dataclass(frozen=True)
class View:
    group: Group
    experiment: Experiment | None
    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def metric(self) -> str:
        """The one that the table is about."""
        return self.experiment.metric if self.experiment else "read_bytes"

    @property
    def columns(self) -> tuple[str, ...]:
        """Further metrics that the experiment wants to be seen, and the hardware's where they were counted."""
        named = self.experiment.columns if self.experiment else ()
        counted = {name for row in self.rows for name in row.metrics}
        return (*named, *(name for name in HARDWARE if name in counted and name not in named))

    @property
    def modelled(self) -> bool:
        return self.group.backend == MODEL

    @property
    def ratio_to(self) -> str | None:
        """What the ratios of this table are to; rows that differ say so themselves."""
        return next((row.ratio_to for row in self.rows if row.ratio_to), None)

    @property
    def factor(self) -> float | None:
        scale = self.experiment.scales.get(self.group.scale) if self.experiment else None
        return scale.factor if scale else None

    def repeats(self, metrics: Sequence[str] = ()) -> list[str]:
        """How far boots of one row are apart in these metrics, or the table's; nothing if there is one boot of each."""
        names = metrics or [self.metric]
        spreads = [row.metrics[name] for row in self.rows for name in names if row.n > 1 and name in row.metrics]
        if not spreads:
            return []
        if all(each.least == each.most for each in spreads):
            return ["Boots of a row repeat exactly."]
        sentences = []
        shares = [each for each in spreads if each.median or each.least == each.most]
        apart = [(each.most - each.least) / each.median * 100 if each.median else 0.0 for each in shares]
        if any(apart):
            most, middle = (float(f"{each:.2g}") for each in (max(apart), median(apart)))
            usual = f", by {middle:g} % in the median" if len(apart) > 1 else ""
            worst = f"{most:g} %" if most < _MOST_PERCENT else f"{most / 100:,.0f} times their median"
            sentences.append(f"Boots of a row differ by up to {worst}{usual}.")
        if len(shares) < len(spreads):
            sentences.append("Where a median is 0, not all boots have 0.")
        return sentences

    def remarks(self) -> list[str]:
        remarks = [time_remark(self.group)] if time_remark(self.group) else []
        if self.modelled:
            remarks.append(MODELLED)
            remarks += [] if self.group.device else [TIMELESS]
        floor = "; times floor is bytes read for each byte of the pages touched"
        runs = "runs" if self.modelled else "boots"
        has_floor = any(row.times_floor is not None for row in self.rows)
        several = len({row.n for row in self.rows if row.n}) > 1
        ratios = "; what is set against another is so in the repetitions that both have" if several else ""
        remarks.append(f"Each figure is the median of n {runs}{floor if has_floor else ''}{ratios}.")
        if self.experiment:
            remarks += self.experiment.notes
        spelled = [f"{name} {kernel.release} ({kernel.hash})" for name, kernel in self.group.kernels.items()]
        remarks.append(f"Kernel: {'; '.join(spelled)}.")
        absent = [each for each in self.group.samples if each.outcome == NOT_APPLICABLE or NOT_COUNTED in each.sentence]
        remarks += sorted({sample.sentence for sample in absent})
        for sample in self.group.samples:
            if sample.outcome not in (OK, NOT_APPLICABLE):
                where = f"{sample.variant}, repetition {sample.repetition}"
                remarks.append(f"{Cell.of(sample.cell).label}, {where}: {sample.outcome}. {sample.sentence}")
        if self.group.older:
            remarks.append(
                f"Left out: {self.group.older} samples of older kernels, switches, probes or parameters that the store"
                " holds."
            )
        return remarks

    def to_json(self) -> list[dict[str, Any]]:
        """The rows for programs; sizes in bytes."""
        return [
            {
                **self.group.to_json(),
                "profile": self.group.profile,
                "kernel": asdict(self._kernel_of(row)),
                **asdict(row),
                "cell": row.cell.as_dict(),
                "metrics": {name: spread.to_json() for name, spread in row.metrics.items()},
            }
            for row in self.rows
        ]

    def verdicts_to_json(self) -> list[dict[str, Any]]:
        group = self.group
        place = {"experiment": group.experiment, "scale": group.scale, "backend": group.backend}
        return [{**place, **asdict(verdict), "cell": verdict.cell.as_dict()} for verdict in self.verdicts]

    def _kernel_of(self, row: Row) -> KernelFacts:
        return next(sample.kernel for sample in self.group.samples if sample.variant == row.variant)


def view_of(measured: Collected) -> tuple[View, list[Agreement]]:
    """The table of what was just measured, and how that of kernels and that of the model agree, where both are there.

    The table has all else that the store has for it, too.
    """
    experiments = {measured.experiment.name: measured.experiment}
    views = make_views(measured.stored, experiments)
    shown = place_of(measured.samples[0])
    view = next(view for view in views if place_of(view.group) == shown)
    comparisons = compare([view.group for view in views], experiments)
    return view, [each for each in comparisons if view.group in (each.model, each.kernel)]


def make_views(samples: Iterable[Sample], experiments: dict[str, Experiment]) -> list[View]:
    """A view for each group of samples."""
    return views_of(group_samples(samples), experiments)


def views_of(groups: Iterable[Group], experiments: dict[str, Experiment]) -> list[View]:
    """A view for each; ``experiments`` by name, where their files are known."""
    views = []
    for group in groups:
        experiment = experiments.get(group.experiment)
        rows = make_rows(group, experiment)
        verdicts = judge(experiment, group, rows) if experiment else []
        views.append(View(group, experiment, tuple(rows), tuple(verdicts)))
    return views

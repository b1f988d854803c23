# SPDX-License-Identifier: GPL-2.0-only
"""The columns of a table as text, the same for the terminal and for Markdown.

First the experiment's own metric with all that is said about it, then the further ones that it names, then
what is of interest in any experiment.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from foliohost.sizes import count as count
from foliohost.terminal import Column as Column
from foliolab.analyse.expected import Status
from foliolab.analyse.rows import Row
from foliolab.errors import UsageError
from foliolab.experiment.cell import agrees
from foliolab.experiment.metrics import METRICS, Kind, Metric
from foliolab.report.titles import titles_of
from foliolab.report.view import View, timeless


def mib(size_bytes: float) -> str:
    return f"{size_bytes / (1 << 20):,.1f}"


def rate(number: float) -> str:
    """Two digits behind the point, or two that say something."""
    return f"{number:,.2f}" if number >= 0.1 or not number else f"{number:.2g}"


def seconds(duration: float) -> str:
    return f"{duration:.3f}"


@dataclass(frozen=True)
class Unit:
    name: str
    """As it stands in a title; empty if the title says it."""
    spell: Callable[[float], str]


GIB = Unit("GiB", lambda size_bytes: f"{size_bytes / (1 << 30):.3f}")
UNITS: Mapping[Kind, Unit] = {
    Kind.BYTES: Unit("MiB", mib),
    Kind.COUNT: Unit("", count),
    Kind.RATE: Unit("", rate),
    Kind.MILLIONS: Unit("", lambda number: f"{number / 1e6:,.1f}"),
    Kind.SHARE: Unit("%", lambda share: f"{share * 100:.1f}"),
    Kind.SECONDS: Unit("seconds", seconds),
    Kind.SPEED: Unit("MiB/s", mib),
}


def with_unit(metric: Metric) -> str:
    return " ".join(part for part in (*metric.title, UNITS[metric.kind].name) if part)


def off_by(share: float | None) -> str:
    """How far a figure is from another, as a share of that; None if that is 0 and it is not."""
    return "from none" if share is None else f"{share * 100:+.1f} %"


def times(factor: float) -> str:
    return f"{factor:.1f}" if factor < 10 else count(factor)


def change(ratio: float) -> str:
    """A ratio in words: "25.2x less", "same", "+1.3 %"."""
    if ratio <= 0.5:
        return f"{1 / ratio:.1f}x less" if ratio else "nothing"
    if ratio >= 2:
        return f"{ratio:.1f}x more"
    if ratio == 1:
        return "same"
    return f"{(ratio - 1) * 100:+.2f} %"


def scale_factor(factor: float) -> str:
    """1/8 for 0.125, else the plain number."""
    inverse = 1 / factor
    return f"1/{inverse:.0f}" if factor < 1 and abs(inverse - round(inverse)) < 1e-6 else f"{factor:g}"


_ALWAYS = {"read_requests": 103, "major_faults": 102, "instructions": 102, "seconds": 105}
"""Metrics that are shown wherever they were counted, with their columns' ranks."""
_RANGE = 104
_OF_TIME = (Kind.SECONDS, Kind.SPEED)


def make_columns(view: View) -> list[Column]:
    def column(title: tuple[str, str], cell: Callable[[Row], str], rank: int = 0, left: bool = False) -> Column:
        return Column(title, tuple(cell(row) for row in view.rows), rank, left)

    def measured(name: str, unit: Unit, rank: int) -> Iterator[Column]:
        """A metric, and what was published of it; nothing if nobody counted it."""
        if any(name in row.metrics for row in view.rows):
            yield column(_title(METRICS[name], unit, view), lambda row: _median(row, name, unit), rank)
            yield from published(name, unit, rank)

    def published(name: str, unit: Unit, rank: int) -> Iterator[Column]:
        if _comparable(METRICS[name], view) and any(name in row.published for row in view.rows):
            title = ("published", _published_unit(METRICS[name], unit, view))
            yield column(title, lambda row: unit.spell(row.published[name]) if name in row.published else "", rank)

    rows = view.rows
    main = METRICS[view.metric]
    unit = _unit(main, view)
    columns = [
        Column(("", "cell"), tuple(first_of_each(row.cell.label for row in rows)), 0, left=True),
        column(("", "variant"), lambda row: row.variant, left=True),
        column(_title(main, unit, view), lambda row: _figure(row, main, unit)),
    ]
    if any(row.n > 1 for row in rows):
        columns.append(column(("min to max", unit.name), lambda row: _range(row, main.name, unit), rank=_RANGE))
    if any(row.times_floor is not None for row in rows):
        columns.append(
            column(("times", "floor"), lambda row: "" if row.times_floor is None else times(row.times_floor))
        )
    if view.ratio_to and any(row.variant != row.ratio_to for row in rows):
        columns.append(column(("against", view.ratio_to), lambda row: _ratio(row, view.ratio_to)))
    columns += published(main.name, unit, rank=1)
    named = [name for name in view.columns if name != main.name]
    for rank, name in enumerate(named, start=2):
        columns += measured(name, UNITS[METRICS[name].kind], rank)
    for name, rank in _ALWAYS.items():
        if name not in (main.name, *named):
            tells = METRICS[name].kind in _OF_TIME and view.group.device
            columns += measured(name, UNITS[METRICS[name].kind], 1 if tells else rank)
    columns.append(column(("", "n"), lambda row: str(row.n)))
    return columns


@dataclass(frozen=True)
class Shown:
    """What a column of a table is about."""

    variant: str
    cells: str = ""
    """Only these: "axis=value", several with commas."""

    @property
    def axes(self) -> list[str]:
        return [part.partition("=")[0].strip() for part in self.cells.split(",") if part]

    def has(self, row: Row) -> bool:
        return row.variant == self.variant and (not self.cells or agrees(row.cell, self.cells))


def variant_columns(view: View, heads: Mapping[str, Shown], metrics: Sequence[str]) -> list[Column]:
    """A column for each head, and a row for each cell and metric; cells that differ only in axes of heads share one.

    Without metrics it is the experiment's own. A single one is named in the corner, several beside their cells. What
    no sample is of says so. UsageError if cells of one column differ only so.
    """
    chosen = [METRICS[name] for name in metrics or [view.metric]]
    titles = [" ".join(_title(metric, _unit(metric, view), view)).strip() for metric in chosen]
    across = {axis for shown in heads.values() for axis in shown.axes}
    cells = list(dict.fromkeys(row.cell.without(across) for row in view.rows))
    labels = titles_of(view.group.experiment, cells) if across else tuple(cell.label for cell in cells)

    def figures(shown: Shown) -> tuple[str, ...]:
        mine = [row for row in view.rows if shown.has(row)]
        rows = {row.cell.without(across): row for row in mine}
        if len(rows) < len(mine):
            raise UsageError(
                f"A column of {shown.variant} has several figures for a cell: say which by {', '.join(sorted(across))}."
            )
        found = ((rows.get(cell), metric) for cell in cells for metric in chosen)
        return tuple(_figure(row, metric, _unit(metric, view)) if row else Status.NOT_MEASURED for row, metric in found)

    named = Column(
        ("", "cell" if len(chosen) > 1 else titles[0]),
        tuple(first_of_each(label for label in labels for _ in chosen)),
        0,
        left=True,
    )
    beside = [Column(("", "figure"), tuple(titles) * len(cells), 0, left=True)] if len(chosen) > 1 else []
    return [named, *beside, *(Column(("", head), figures(shown), 0) for head, shown in heads.items())]


def _figure(row: Row, metric: Metric, unit: Unit) -> str:
    return _median(row, metric.name, unit) if row.n else ", ".join(row.failures)


def _unit(metric: Metric, view: View) -> Unit:
    """The metric that a table is about has larger ones."""
    return GIB if metric.kind is Kind.BYTES and metric.name == view.metric else UNITS[metric.kind]


def _title(metric: Metric, unit: Unit, view: View) -> tuple[str, str]:
    first, second = metric.title
    if metric.kind in _OF_TIME and timeless(view.group):
        first = f"emulated {first}".strip()
    return first, f"{second} {unit.name}".strip()


def _comparable(metric: Metric, view: View) -> bool:
    """Whether published values mean anything here; those of time do on a real machine at full size."""
    return view.factor is not None and (metric.kind not in _OF_TIME or (view.factor == 1 and not timeless(view.group)))


def _published_unit(metric: Metric, unit: Unit, view: View) -> str:
    name = unit.name or metric.title[1]
    return f"{name} x {scale_factor(view.factor)}" if view.factor and view.factor != 1 and metric.scales else name


def first_of_each(labels: Iterable[str]) -> Iterator[str]:
    """A cell is named at its first row only."""
    before = None
    for label in labels:
        yield "" if label == before else label
        before = label


def _median(row: Row, name: str, unit: Unit) -> str:
    return unit.spell(row.metrics[name].median) if name in row.metrics else ""


def _range(row: Row, name: str, unit: Unit) -> str:
    spread = row.metrics.get(name)
    if not spread or row.n < 2:
        return ""
    return "identical" if spread.least == spread.most else f"{unit.spell(spread.least)} to {unit.spell(spread.most)}"


def _ratio(row: Row, base: str | None) -> str:
    if row.ratio is None or row.variant == row.ratio_to:
        return ""
    return change(row.ratio) if row.ratio_to == base else f"{change(row.ratio)} ({row.ratio_to})"

# SPDX-License-Identifier: GPL-2.0-only
"""The columns of a table as text, the same for the terminal and for Markdown."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from foliolab.analyse.rows import Row
from foliolab.report.figures import change, count, gib, scale_factor, seconds, times
from foliolab.report.view import View


@dataclass(frozen=True)
class Column:
    title: tuple[str, str]
    """Two lines; the second has the unit."""
    cells: tuple[str, ...]
    """One a row."""
    rank: int
    """Where room is short, columns of high rank go first; 0 stays."""
    left: bool = False

    @property
    def width(self) -> int:
        return max(len(text) for text in (*self.title, *self.cells))


def make_columns(view: View) -> list[Column]:
    """All columns that have something to say."""

    def column(title: tuple[str, str], cell: Callable[[Row], str], rank: int = 0, left: bool = False) -> Column:
        return Column(title, tuple(cell(row) for row in view.rows), rank, left)

    def metric(title: tuple[str, str], name: str, rank: int, spell: Callable[[float], str]) -> Column:
        return column(title, lambda row: spell(row.metrics[name].median) if name in row.metrics else "", rank)

    rows = view.rows
    columns = [
        Column(("", "cell"), tuple(_first_of_each(row.cell.label for row in rows)), 0, left=True),
        column(("", "variant"), lambda row: row.variant, left=True),
        column(("read", "GiB"), _read),
    ]
    if any(row.n > 1 for row in rows):
        columns.append(column(("min to max", "GiB"), _range, rank=4))
    columns.append(column(("times", "floor"), lambda row: _or_blank(times, row.times_floor)))
    if view.ratio_to and any(row.variant != row.ratio_to for row in rows):
        columns.append(column(("against", view.ratio_to), lambda row: _ratio(row, view.ratio_to)))
    if view.factor and any(row.published_bytes is not None for row in rows):
        unit = "GiB" if view.factor == 1 else f"GiB x {scale_factor(view.factor)}"
        columns.append(column(("published", unit), lambda row: _or_blank(gib, row.published_bytes), rank=1))
    columns.append(metric(("read", "requests"), "read_requests", 3, count))
    columns.append(metric(("major", "faults"), "major_faults", 2, count))
    if any("instructions" in row.metrics for row in rows):
        columns.append(metric(("million", "instructions"), "instructions", 2, lambda value: f"{value / 1e6:,.1f}"))
    columns.append(metric(("emulated" if view.emulated else "", "seconds"), "seconds", 5, seconds))
    if view.factor == 1 and not view.emulated:
        columns.append(column(("published", "seconds"), lambda row: _or_blank(seconds, row.published_seconds), rank=5))
    columns.append(column(("", "n"), lambda row: str(row.n)))
    return columns


def _first_of_each(labels: Iterable[str]) -> Iterator[str]:
    """A cell is named at its first row only."""
    before = None
    for label in labels:
        yield "" if label == before else label
        before = label


def _read(row: Row) -> str:
    if row.n:
        return gib(row.metrics["read_bytes"].median) if "read_bytes" in row.metrics else ""
    return ", ".join(row.failures)


def _range(row: Row) -> str:
    spread = row.metrics.get("read_bytes")
    if not spread or row.n < 2:
        return ""
    return "identical" if spread.least == spread.most else f"{gib(spread.least)} to {gib(spread.most)}"


def _ratio(row: Row, base: str | None) -> str:
    if row.ratio is None or row.variant == row.ratio_to:
        return ""
    return change(row.ratio) if row.ratio_to == base else f"{change(row.ratio)} ({row.ratio_to})"


def _or_blank(spell: Callable[[float], str], value: float | None) -> str:
    return "" if value is None else spell(value)

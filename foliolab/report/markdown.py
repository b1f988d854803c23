# SPDX-License-Identifier: GPL-2.0-only
"""Tables in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from foliolab.analyse.expected import Status
from foliolab.analyse.losses import Matrix, make_pairs
from foliolab.errors import NoResult
from foliolab.report import losses
from foliolab.report.columns import Column, Shown, make_columns, variant_columns
from foliolab.report.devices import device_columns
from foliolab.report.expected import Line
from foliolab.report.section import Section
from foliolab.report.simulate import device_tables
from foliolab.report.store_prices import PRICED, PRICES, shown_rows
from foliolab.report.view import MadeBy, View, origin
from foliolab.simulate.rows import RegretRow
from foliolab.simulate.suite import FAMILIES, PATTERNS, TRACES, Suite
from foliolab.simulate.summary import by_way

_RANK_OF_OTHERS, _RANK_OF_TIME = 100, 104
"""Of columns that no experiment names, and of those of them that say little under emulation."""

_REGRETS = ("variant", "patterns: mean", "worst", "judged: mean", "families: mean", "worst", "traces: mean", "worst")

_MARKS = {Status.HOLDS: "holds", Status.FAILS: "**fails**", Status.NOT_MEASURED: "not measured"}


def to_markdown(section: Section) -> str:
    """Title, table, remarks, and what it comes to."""
    lines = [f"### {section.title}", ""]
    if section.question:
        lines += [section.question, ""]
    if section.columns:
        lines += _table(section.columns)
    for paragraph in ([f"- {remark}" for remark in section.remarks], [*map(_line, section.lines)]):
        if paragraph:
            lines += ["", *paragraph] if lines[-1] else paragraph
    return "\n".join(lines) + "\n"


def _line(line: Line) -> str:
    if line.status:
        return f"- {_MARKS[line.status]}: {line.text}"
    return f"  - {line.text}" if line.detail else f"- {line.text}"


def document_table(columns: Sequence[Column], *below: str) -> str:
    """For a document: a table, and lines below it."""
    table = _table(columns)
    return "\n".join([*table, "", *below] if below else table) + "\n"


def to_table(view: View, made_by: MadeBy | None = None) -> str:
    """For a document: what decides, how often, of which kernels, and the command that measures it."""
    most = _RANK_OF_OTHERS if view.columns else _RANK_OF_TIME
    columns = [column for column in make_columns(view) if column.rank < most and column.title != ("", "n")]
    return document_table(columns, _about(view, made_by))


def variants_to_table(
    view: View, heads: Mapping[str, Shown], metrics: Sequence[str] = (), made_by: MadeBy | None = None
) -> str:
    """For a document: ``variant_columns`` of the rows that these show, and the same about those."""
    rows = tuple(row for row in view.rows if any(shown.has(row) for shown in heads.values()))
    shown_view = replace(view, rows=rows)
    return document_table(variant_columns(shown_view, heads, metrics), _about(shown_view, made_by, metrics))


def prices_to_table(view: View, which: str, made_by: MadeBy | None = None) -> str:
    """For a document: one of PRICES of stores, and the same about what that shows."""
    columns = PRICES[which](view)
    shown = replace(view, rows=shown_rows(view, which))
    return document_table(columns, _about(shown, made_by, PRICED if which == "workloads" else ()))


def devices_to_table(views: Sequence[View], made_by: MadeBy | None = None) -> str:
    """For a document: what the adaptive window does on each timed disk, and the same about each."""
    about = [f"- {_about(view, made_by, ('seconds', view.metric))}" for view in views]
    return document_table(device_columns(views), *about)


def _about(view: View, made_by: MadeBy | None, metrics: Sequence[str] = ()) -> str:
    """How often its rows were measured, of which kernels, by which command, and how far boots are apart."""
    command = made_by(view.group, ((row.cell, row.variant) for row in view.rows)) if made_by else ""
    return " ".join([origin(view.group, (row.n for row in view.rows if row.n), command), *view.repeats(metrics)])


def matrix_to_table(matrix: Matrix, made_by: MadeBy | None = None) -> str:
    """For a document: what decides in each workload, with the boots and the command behind it.

    NoResult if there is nothing to compare.
    """
    if not matrix.differences:
        raise NoResult(losses.conclusion(matrix))
    columns = [each for each in losses.loss_columns(matrix, make_pairs(matrix)) if each.title != ("", "n")]
    gaps = [line for _, line in losses.gap_lines(matrix)]
    remarks = [*losses.legend(matrix), *losses.origins(matrix, made_by), losses.again_line(matrix), *gaps]
    return document_table(columns, *remarks)


def regret_to_table(suite: Suite, rows: Sequence[RegretRow]) -> str:
    """For a document: what ways to read cost in multiples of the best fixed window, ours last; then by device."""
    groups = {group: [row for row in rows if row.group == group] for group in (PATTERNS, FAMILIES, TRACES)}
    spreads = [by_way(found) for found in groups.values()]
    judged = by_way(groups[PATTERNS], judged_only=True)
    lines = [markdown_row(_REGRETS), markdown_row("---" if title == "variant" else "---:" for title in _REGRETS)]
    for way in sorted(filter(lambda way: way.title, suite.ways), key=lambda way: way.name == "adaptive"):
        found = (each[way.name] for each in spreads)
        (mean, worst), *others = ((f"{each.mean:.3f}", _worst(each.worst)) for each in found)
        cells = [way.title, mean, worst, f"{judged[way.name].mean:.3f}", *(cell for pair in others for cell in pair)]
        lines.append(markdown_row(cells if way.name != "adaptive" else [f"**{cell}**" for cell in cells]))
    shown = [way.name for way in suite.ways]
    for group, members in groups.items():
        for title, columns in device_tables(members, shown):
            lines += ["", f"By device, {group}, {title}:", "", *_table(columns)]
    return "\n".join(lines) + "\n"


def _worst(regret: float) -> str:
    """Three digits, or all before the point."""
    return f"{regret:,.0f}" if regret >= 100 else f"{regret:.1f}" if regret >= 10 else f"{regret:.2f}"


def _table(columns: Sequence[Column]) -> list[str]:
    return [
        markdown_row(" ".join(part for part in column.title if part) for column in columns),
        markdown_row("---" if column.left else "---:" for column in columns),
        *(markdown_row(cells) for cells in zip(*(column.cells for column in columns), strict=True)),
    ]


def markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"

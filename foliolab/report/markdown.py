# SPDX-License-Identifier: GPL-2.0-only
"""Tables in Markdown."""

from collections.abc import Iterable, Sequence

from foliolab.analyse.agreement import Comparison
from foliolab.analyse.losses import Matrix, by_variant
from foliolab.analyse.verdict import Status
from foliolab.report import agreement, losses
from foliolab.report.columns import Column, make_columns
from foliolab.report.verdicts import verdict_lines
from foliolab.report.view import View

_MARKS = {Status.HOLDS: "holds", Status.FAILS: "**fails**", Status.NOT_MEASURED: "not measured"}


def to_markdown(view: View) -> str:
    """One section: title, table, remarks, verdicts."""
    columns = make_columns(view)
    lines = [f"### {view.title}", ""]
    if view.experiment:
        lines += [view.experiment.question, ""]
    lines += _table(columns)
    lines += ["", *(f"- {remark}" for remark in view.remarks())]
    if view.verdicts:
        lines += ["", "Expectations:", ""]
        lines += [
            f"  - {line.text}" if line.detail else f"- {_MARKS[line.status]}: {line.text}"
            for line in verdict_lines(view.verdicts)
        ]
    return "\n".join(lines) + "\n"


def comparison_to_markdown(comparison: Comparison) -> str:
    """One section: title, table, how much is too far apart."""
    table = _table(agreement.agreement_columns(comparison))
    return "\n".join([f"### {agreement.title(comparison)}", "", *table, "", agreement.summary(comparison)]) + "\n"


def matrix_to_markdown(matrix: Matrix, *, everything: bool) -> str:
    """One section: title, table, remarks, what could not be compared, what it comes to."""
    rows = losses.make_rows(matrix, everything=everything)
    lines = [f"### {losses.title(matrix)}", ""]
    if rows:
        lines += [*_table(losses.loss_columns(matrix, rows)), "", *(f"- {each}" for each in losses.remarks(matrix))]
    lines += [f"- {line}" for _, line in losses.gap_lines(matrix)]
    lines += [f"- {losses.summary_line(matrix, summary)}" for summary in by_variant(matrix)]
    if conclusion := losses.conclusion(matrix):
        lines += ["", conclusion]
    return "\n".join(lines) + "\n"


def _table(columns: Sequence[Column]) -> list[str]:
    return [
        _row(" ".join(part for part in column.title if part) for column in columns),
        _row("---" if column.left else "---:" for column in columns),
        *(_row(cells) for cells in zip(*(column.cells for column in columns), strict=True)),
    ]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"

# SPDX-License-Identifier: GPL-2.0-only
"""Tables in Markdown."""

from collections.abc import Iterable

from foliolab.analyse.verdict import Status
from foliolab.report.columns import make_columns
from foliolab.report.verdicts import verdict_lines
from foliolab.report.view import View

_MARKS = {Status.HOLDS: "holds", Status.FAILS: "**fails**", Status.NOT_MEASURED: "not measured"}


def to_markdown(view: View) -> str:
    """One section: title, table, remarks, verdicts."""
    columns = make_columns(view)
    lines = [f"### {view.title}", ""]
    if view.experiment:
        lines += [view.experiment.question, ""]
    lines.append(_row(" ".join(part for part in column.title if part) for column in columns))
    lines.append(_row("---" if column.left else "---:" for column in columns))
    lines += [_row(column.cells[number] for column in columns) for number in range(len(view.rows))]
    lines += ["", *(f"- {remark}" for remark in view.remarks())]
    if view.verdicts:
        lines += ["", "Expectations:", ""]
        lines += [
            f"  - {line.text}" if line.detail else f"- {_MARKS[line.status]}: {line.text}"
            for line in verdict_lines(view.verdicts)
        ]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"

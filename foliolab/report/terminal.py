# SPDX-License-Identifier: GPL-2.0-only
"""Tables for the terminal."""

import os
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from foliohost.terminal import column_widths, fitting
from foliolab.analyse.agreement import Agreement
from foliolab.analyse.differences import Change
from foliolab.analyse.losses import Matrix, by_variant
from foliolab.analyse.rows import Row
from foliolab.analyse.verdict import Status
from foliolab.campaign.sample import NOT_APPLICABLE
from foliolab.experiment.metrics import METRICS, Metric
from foliolab.report import agreement, losses
from foliolab.report.columns import Column, make_columns
from foliolab.report.verdicts import verdict_lines
from foliolab.report.view import View

_GAP = 2
# Of which one is padding and one is where the box would have a line.
_ANY_WIDTH = 10_000
# Characters, where no terminal bounds a line.
_MARKS = {Status.HOLDS: ("ok  ", "green"), Status.FAILS: ("FAIL", "bold red"), Status.NOT_MEASURED: ("-   ", "dim")}
_CHANGES = {Change.WORSE: "red", Change.SUSPECTED: "yellow", Change.BETTER: "green"}


def terminal(*, stderr: bool = False) -> Console:
    """The standard output, or error output, as tables are printed there.

    What is no terminal is as wide as a table has to be, unless COLUMNS says otherwise.
    """
    console = Console(highlight=False, stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _ANY_WIDTH
    return console


def print_view(console: Console, view: View) -> None:
    """Print one table, its remarks and its verdicts, as wide as the console allows."""
    print_title(console, view.group.title, view.experiment.question if view.experiment else "")
    styles = [_style(row, METRICS[view.metric]) for row in view.rows]
    print_table(console, make_columns(view), styles, [row.cell for row in view.rows])
    console.print()
    for remark in view.remarks():
        console.print(Text(remark, style="dim"))
    if view.verdicts:
        console.print()
        for line in verdict_lines(view.verdicts):
            mark, style = _MARKS[line.status]
            console.print(
                Text("         " + line.text) if line.detail else Text.assemble((mark, style), " ", line.text)
            )
    console.print()


def print_comparison(console: Console, comparison: Agreement) -> None:
    """Print the model beside a kernel, with what is too far apart in red."""
    styles = ["" if all(figure.within for figure in row.values()) else "red" for row in comparison.rows]
    cells = [next(iter(row.values())).cell for row in comparison.rows]
    print_title(console, agreement.title(comparison))
    print_table(console, agreement.agreement_columns(comparison), styles, cells)
    console.print()
    mark, style = _MARKS[Status.FAILS if comparison.beyond else Status.HOLDS]
    console.print(Text.assemble((mark, style), " ", agreement.summary(comparison)))
    console.print()


def print_matrix(console: Console, matrix: Matrix, *, everything: bool) -> None:
    """Print which workloads get worse, those first: by the metric that decides, or by each; and what it comes to."""
    rows = losses.make_rows(matrix, everything=everything)
    print_title(console, losses.title(matrix))
    if rows:
        styles = [_CHANGES.get(row.deciding.change, "") for row in rows]
        print_table(console, losses.loss_columns(matrix, rows), styles)
        console.print()
        for remark in losses.remarks(matrix):
            console.print(Text(remark, style="dim"))
    console.print()
    for gap, line in losses.gap_lines(matrix):
        console.print(Text(line, style="red" if gap.failed else "dim"))
    for summary in by_variant(matrix):
        console.print(
            Text(
                losses.summary_line(matrix, summary),
                style="red" if summary.worse else "yellow" if summary.suspected else "",
            )
        )
    if conclusion := losses.conclusion(matrix):
        console.print(Text(conclusion, style="bold"))
    console.print()


def print_title(console: Console, title: str, remark: str = "", style: str = "bold") -> None:
    """Print what stands above a table."""
    console.print(Text(title, style=style))
    if remark:
        console.print(Text(remark, style="italic"))


def print_table(
    console: Console, columns: Sequence[Column], styles: Sequence[str] = (), groups: Sequence[object] = ()
) -> None:
    """Rows, with a style each if there are any; neighbours in different groups are kept apart.

    Where room is short, columns are left out and names wrap. Figures are never cut: if all that is left still does not
    fit, the table is wider than the terminal.
    """
    kept = fitting(columns, console.width)
    widths = column_widths(kept, console.width)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0), show_edge=False)
    table.width = sum(width + _GAP for width in widths)
    for column, width in zip(kept, widths, strict=True):
        table.add_column(
            Text("\n".join(column.title)),
            justify="left" if column.left else "right",
            no_wrap=not column.left,
            overflow="fold",
            width=width,
        )
    for number, style in enumerate(styles or [""] * len(columns[0].cells)):
        if number and groups and groups[number] != groups[number - 1]:
            table.add_section()
        table.add_row(*(Text(column.cells[number]) for column in kept), style=style)
    console.print(table, crop=False)


def _style(row: Row, metric: Metric) -> str:
    if not row.n:
        return "dim" if set(row.failures) == {NOT_APPLICABLE} else "red"
    if row.ratio is None:
        return ""
    return "bold green" if (row.ratio >= 2 if metric.more_is_better else row.ratio <= 1 / 2) else ""

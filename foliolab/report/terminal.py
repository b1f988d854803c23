# SPDX-License-Identifier: GPL-2.0-only
"""Tables for the terminal."""

import os
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from foliohost.terminal import column_widths, fitting
from foliolab.analyse.expected import Status
from foliolab.report.columns import Column
from foliolab.report.expected import Line
from foliolab.report.section import Section

_GAP = 2
# Of which one is padding and one is where the box would have a line.
_ANY_WIDTH = 10_000
# Characters, where no terminal bounds a line.
_MARKS = {Status.HOLDS: ("ok  ", "green"), Status.FAILS: ("FAIL", "bold red"), Status.NOT_MEASURED: ("-   ", "dim")}


def terminal() -> Console:
    """The standard output, as tables are printed there.

    What is no terminal is as wide as a table has to be, unless COLUMNS says otherwise.
    """
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _ANY_WIDTH
    return console


def print_section(console: Console, section: Section) -> None:
    """Print a table as wide as the console allows, its remarks, and what it comes to."""
    print_title(console, section.title, section.question)
    if section.columns:
        print_table(console, section.columns, section.styles, section.groups)
    for lines in ([Text(remark, style="dim") for remark in section.remarks], [*map(_line, section.lines)]):
        if lines:
            console.print()
            for line in lines:
                console.print(line)
    console.print()


def _line(line: Line) -> Text:
    if line.status:
        return Text.assemble(_MARKS[line.status], " ", line.text)
    return Text("         " + line.text if line.detail else line.text, style=line.style)


def print_title(console: Console, title: str, remark: str = "", style: str = "bold") -> None:
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

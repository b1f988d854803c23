# SPDX-License-Identifier: GPL-2.0-only
"""Lines and tables for people."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

_GAP = 2
"""Characters between columns."""
_NAME = 24
"""Characters of a name for which no column is left out."""
_LEAST_NAME = 12
"""Characters that a name's column keeps at least, if any of its words is as long."""
_DEFAULT_WIDTH = 80
_ANY_WIDTH = 10_000
"""Characters, where no terminal bounds a table."""
_CODES = {"bold": "1", "dim": "2", "yellow": "33"}
_ESCAPES = {number: f"\\x{number:02x}" for number in (*range(0x20), *range(0x7F, 0xA0))}


def printable(text: str) -> str:
    """A line for a terminal, which must not do what is in the name of somebody's file."""
    return text.translate(_ESCAPES)


class Terminal:
    """A stream of lines, some of them styled where a terminal shows that."""

    def __init__(self, stream: TextIO, width: int, table_width: int = 0) -> None:
        self.width = width
        """Characters of a line."""
        self.table_width = table_width or width
        self._stream = stream
        self._styled = stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")

    def shows(self, text: str) -> bool:
        """Whether the encoding of the stream has these characters."""
        try:
            text.encode(self._stream.encoding or "utf-8")
        except UnicodeEncodeError:
            return False
        return True

    def out(self, text: str = "", style: str = "") -> None:
        """Print a line, however long; ``style`` is bold, dim, yellow or nothing."""
        text = printable(text)
        if style and self._styled:
            text = f"\x1b[{_CODES[style]}m{text}\x1b[0m"
        self._stream.write(f"{text}\n")


def terminal(*, stderr: bool = False) -> Terminal:
    """The standard output, or error output, as wide as the terminal or as ``$COLUMNS`` says.

    Of a file or a pipe, tables are as wide as they have to be, unless that says otherwise.
    """
    stream, chosen = sys.stderr if stderr else sys.stdout, os.environ.get("COLUMNS", "")
    given = int(chosen) if chosen.isdecimal() else 0
    width = given or _terminal_width()
    return Terminal(stream, width, width if given or stream.isatty() else _ANY_WIDTH)


def _terminal_width() -> int:
    for handle in (0, 1, 2):
        with suppress(OSError):
            return os.get_terminal_size(handle).columns or _DEFAULT_WIDTH
    return _DEFAULT_WIDTH


@dataclass(frozen=True)
class Column:
    title: tuple[str, str]
    """Two lines; the second has the unit."""
    cells: tuple[str, ...]
    """One a row."""
    rank: int
    """Where room is short, columns of high rank go first; 0 stays."""
    left: bool = False
    """A name: it stands on the left, and wraps where room is short. All else are figures, which never do."""

    @property
    def width(self) -> int:
        """Characters that it takes if nothing wraps."""
        return max(len(text) for text in (*self.title, *self.cells))

    @property
    def least(self) -> int:
        """Characters without which it cannot be read."""
        if not self.left:
            return self.width
        words = [word for text in (*self.title, *self.cells) for word in text.split()]
        return min(max(map(len, words), default=0), _LEAST_NAME)

    def lines(self, text: str, width: int) -> list[str]:
        """The lines that a cell takes in a column so wide."""
        if not self.left:
            return [text.rjust(width)]
        return [line.ljust(width) for line in textwrap.wrap(text, width, break_on_hyphens=False) or [""]]


def print_table(console: Terminal, columns: Sequence[Column]) -> None:
    """Rows below two lines of titles.

    Where room is short, columns are left out and names wrap. Figures are never cut: if all that is left still does not
    fit, the table is wider than the terminal.
    """
    kept = fitting(columns, console.table_width)
    widths = column_widths(kept, console.table_width)
    for texts in zip(*(column.title for column in kept)):
        _print_row(console, kept, widths, texts)
    rule = "─" if console.shows("─") else "-"
    console.out(rule * (sum(widths) + _GAP * (len(widths) - 1)))
    for texts in zip(*(column.cells for column in kept)):
        _print_row(console, kept, widths, texts)


def _print_row(console: Terminal, columns: Sequence[Column], widths: Sequence[int], texts: Sequence[str]) -> None:
    cells = [column.lines(text, width) for column, width, text in zip(columns, widths, texts)]
    for number in range(max(map(len, cells))):
        parts = (cell[number] if number < len(cell) else " " * width for cell, width in zip(cells, widths))
        console.out((" " * _GAP).join(parts).rstrip())


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """Leave out columns, those of the highest rank first, until the rest fits with names of fair length."""
    kept = list(columns)
    while sum(min(column.width, max(column.least, _NAME)) + _GAP for column in kept) > width:
        highest = max(column.rank for column in kept)
        if not highest:
            break
        kept = [column for column in kept if column.rank != highest]
    return kept


def column_widths(columns: Sequence[Column], width: int) -> list[int]:
    """Characters for each column: the longest names give way."""
    widths = [column.width for column in columns]
    while sum(widths) + _GAP * len(widths) > width:
        wide = [number for number, column in enumerate(columns) if widths[number] > column.least]
        if not wide:
            break
        widths[max(wide, key=lambda number: widths[number])] -= 1
    return widths

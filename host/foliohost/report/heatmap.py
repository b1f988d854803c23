# SPDX-License-Identifier: GPL-2.0-only
"""A file of a trace as a heat map: place in the file over time, and as shades how often it was touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foliohost.sizes import count
from foliohost.terminal import Terminal
from foliohost.trace import Trace

_SHADES, _FRAME = "░▒▓█", ("│", "└", "─")
_PLAIN_SHADES, _PLAIN_FRAME = ".:*#", ("|", "+", "-")
"""Where a locale lacks the others."""
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


@dataclass(frozen=True)
class Axis:
    """From 0 to ``end``, in ``unit``."""

    title: str
    end: float
    unit: str


@dataclass(frozen=True)
class Heatmap:
    """One file of a trace."""

    name: str
    what: str
    """What the cells count: touches or pages read."""
    cells: list[list[int]]
    """The first row is the start of the file, the first column that of the trace."""
    time: Axis
    place: Axis

    @property
    def most(self) -> int:
        """In one cell."""
        return max(map(max, self.cells))

    def shade(self, value: int, shades: int) -> int:
        """Which of so many shades a cell has, by the logarithm of its ``value``; -1 for none."""
        if not value:
            return -1
        most = self.most
        return min(int(shades * math.log(value) / math.log(most)), shades - 1) if most > 1 else shades - 1


def heatmap(trace: Trace, file: int, columns: int, rows: int) -> Heatmap:
    """The touches of a file, by its index, in so many columns and rows.

    Time is in seconds where the trace has times, else the number of the touch among those of all files.
    """
    marks = _marks(trace)
    pages = max(trace.files[file].pages, 1)
    span = marks[-1] if marks else trace.touches
    cells = [[0] * columns for _ in range(rows)]
    for number, (of, page) in enumerate(zip(trace.file_of, trace.page_of)):
        if of == file:
            at = _seconds(marks, number, trace.touches) if marks else number
            cells[page * rows // pages][min(int(at / span * columns), columns - 1)] += 1
    live = trace.other.get("live")
    read = isinstance(live, dict) and live.get("reads") is True
    what = "pages read" if read else "touches"
    time = Axis("time", span, "s") if marks else Axis(f"{what}, in order", trace.touches, "")
    size = pages * trace.page_size
    factor, unit = next(each for each in _UNITS if size >= each[0])
    return Heatmap(trace.files[file].name, what, cells, time, Axis("place in the file", size / factor, unit))


def _marks(trace: Trace) -> list[float]:
    """Seconds at evenly spread touches, the first and the last among them; none where the trace has none."""
    found = trace.other.get("times_ms")
    if not isinstance(found, list) or not all(isinstance(each, int) for each in found):
        return []
    marks = [each / 1000 for each in found]
    return marks if marks and marks == sorted(marks) and marks[0] >= 0 and marks[-1] > 0 else []


def _seconds(marks: Sequence[float], number: int, touches: int) -> float:
    """When a touch was, between the marks on either side of it."""
    place = number * (len(marks) - 1) / max(touches - 1, 1)
    before = int(place)
    after = min(before + 1, len(marks) - 1)
    return marks[before] + (marks[after] - marks[before]) * (place - before)


def print_heatmap(console: Terminal, trace: Trace, file: int, rows: int = 20) -> None:
    """Draw with block characters, as wide as the terminal."""
    full = console.shows(_SHADES + "".join(_FRAME))
    shades, (side, corner, bottom) = (_SHADES, _FRAME) if full else (_PLAIN_SHADES, _PLAIN_FRAME)
    place = heatmap(trace, file, 1, 1).place
    labels = "0", f"{place.end:,.4g} {place.unit}"
    indent = max(map(len, labels))
    columns = max(console.width - indent - 2, 10)
    found = heatmap(trace, file, columns, rows)
    console.out(found.name, style="bold")
    for number, row in enumerate(found.cells):
        label = labels[0] if number == 0 else labels[1] if number == rows - 1 else ""
        drawn = "".join(" " if (shade := found.shade(value, len(shades))) < 0 else shades[shade] for value in row)
        console.out(f"{label:>{indent}} {side}{drawn}".rstrip())
    end = f"{found.time.end:,.1f} {found.time.unit}".strip() if found.time.unit else count(found.time.end)
    console.out(f"{'':{indent}} {corner}{bottom * columns}")
    console.out(f"{'':{indent}}  0{found.time.title:^{max(columns - 1 - len(end), 0)}}{end}")
    console.out(f"{'':{indent}}  {shades[0]} 1 to {shades[-1]} {count(found.most)} {found.what}")

# SPDX-License-Identifier: GPL-2.0-only
"""A file of a trace as a heat map: place in the file over time, and as shades how often it was touched."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Console
from rich.text import Text

from foliolab.report.figures import count
from foliolab.trace.format import Trace

Cells = list[list[int]]
"""Touches; the first row is the start of the file, the first column that of the trace."""

_SHADES = "░▒▓█"
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))

_WIDTH, _HEIGHT = 820, 470
# The drawing, where its field stands in it, and of how many cells that is.
_LEFT, _TOP, _FIELD, _ROOM = 92, 62, 700, 320
_COLUMNS, _ROWS = 175, 80
_COLOURS = ("#b6d8ff", "#6cb0fb", "#2f7fe0", "#0f4fa8", "#072b63")
_DARK_COLOURS = ("#12355f", "#1f5aa3", "#3d8be0", "#86bdf8", "#e0f0ff")
_STYLE = "\n".join(
    (
        ".card{fill:#fff}.frame{fill:none;stroke:#8c959f}.tick{stroke:#8c959f}",
        "text{font:13px system-ui,sans-serif;fill:#59636e}.title{font-weight:600;font-size:16px;fill:#1f2328}",
        *(f".h{level}{{fill:{colour}}}" for level, colour in enumerate(_COLOURS)),
        "@media(prefers-color-scheme:dark){.card{fill:#0d1117}.frame,.tick{stroke:#6e7681}",
        "text{fill:#9198a1}.title{fill:#e6edf3}",
        *(f".h{level}{{fill:{colour}}}" for level, colour in enumerate(_DARK_COLOURS)),
        "}",
    )
)


@dataclass(frozen=True)
class Axis:
    """From 0 to ``end``, in ``unit``."""

    title: str
    end: float
    unit: str

    def ticks(self, most: int) -> list[float]:
        """Round numbers, ``most`` or fewer of them above 0."""
        if not self.end:
            return [0]
        least = self.end / most
        size = 10 ** math.floor(math.log10(least))
        step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= least * (1 - 1e-9))
        return [step * number for number in range(int(self.end / step * (1 + 1e-9)) + 1)]


@dataclass(frozen=True)
class Heatmap:
    """One file of a trace."""

    name: str
    what: str
    """What the cells count: touches or pages read."""
    cells: Cells
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
    for number, (of, page) in enumerate(zip(trace.file_of, trace.page_of, strict=True)):
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


def print_heatmap(console: Console, trace: Trace, file: int, rows: int = 20) -> None:
    """Draw with block characters, as wide as the terminal."""
    labels = _edge_labels(heatmap(trace, file, 1, 1).place)
    indent = max(map(len, labels))
    columns = max(console.width - indent - 2, 10)
    found = heatmap(trace, file, columns, rows)
    console.print(Text(found.name, style="bold"), soft_wrap=True)
    for number, row in enumerate(found.cells):
        label = labels[0] if number == 0 else labels[1] if number == rows - 1 else ""
        shades = "".join(" " if (shade := found.shade(value, len(_SHADES))) < 0 else _SHADES[shade] for value in row)
        console.print(Text(f"{label:>{indent}} │{shades}".rstrip()), soft_wrap=True)
    end = f"{found.time.end:,.1f} {found.time.unit}".strip() if found.time.unit else count(found.time.end)
    console.print(Text(f"{'':{indent}} └{'─' * columns}"), soft_wrap=True)
    console.print(Text(f"{'':{indent}}  0{found.time.title:^{max(columns - 1 - len(end), 0)}}{end}"), soft_wrap=True)
    console.print(Text(f"{'':{indent}}  {_SHADES[0]} 1 to {_SHADES[-1]} {count(found.most)} {found.what}"))


def _edge_labels(place: Axis) -> tuple[str, str]:
    return "0", f"{place.end:,.4g} {place.unit}"


def draw_heatmap(trace: Trace, file: int, title: str) -> str:
    """A self-contained SVG, 820 wide, for light and dark."""
    found = heatmap(trace, file, _COLUMNS, _ROWS)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(f'{title}: {found.what} of {found.name}')}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="card" width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>',
        f'<text class="title" x="{_LEFT}" y="26">{escape(title)}</text>',
        f'<text x="{_LEFT}" y="46">{escape(_short(found.name))}</text>',
        f'<g transform="translate({_LEFT},{_TOP})">',
        *_squares(found),
        f'<rect class="frame" width="{_FIELD}" height="{_ROOM}"/>',
        *_axes(found),
        "</g>",
        *_legend(found),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _short(name: str, most: int = 90) -> str:
    return name if len(name) <= most else f"…{name[1 - most :]}"


def _squares(found: Heatmap) -> Iterator[str]:
    """One path for each shade, of runs of cells."""
    width, height = _FIELD / _COLUMNS, _ROOM / _ROWS
    paths: list[list[str]] = [[] for _ in _COLOURS]
    for number, row in enumerate(found.cells):
        shades = [found.shade(value, len(_COLOURS)) for value in row]
        start = 0
        for column in range(1, _COLUMNS + 1):
            if column < _COLUMNS and shades[column] == shades[start]:
                continue
            if shades[start] >= 0:
                length = (column - start) * width
                paths[shades[start]].append(
                    f"M{start * width:g} {number * height:g}h{length:g}v{height:g}h{-length:g}z"
                )
            start = column
    return (f'<path class="h{shade}" d="{"".join(path)}"/>' for shade, path in enumerate(paths) if path)


def _axes(found: Heatmap) -> Iterator[str]:
    for value in found.place.ticks(6):
        y = value / found.place.end * _ROOM
        yield f'<path class="tick" d="M-5 {y:g}h5"/>'
        yield _label(-9, y + 4, f"{value:,.12g}", "end")
    for value in found.time.ticks(8):
        x = value / found.time.end * _FIELD if found.time.end else 0
        yield f'<path class="tick" d="M{x:g} {_ROOM}v5"/>'
        yield _label(x, _ROOM + 19, f"{value:,.12g}", "middle")
    unit = f", {found.time.unit}" if found.time.unit else ""
    yield _label(_FIELD / 2, _ROOM + 40, found.time.title + unit, "middle")
    yield (
        f'<text transform="translate({16 - _LEFT},{_ROOM / 2:g}) rotate(-90)" text-anchor="middle">'
        f"{found.place.title}, {found.place.unit}</text>"
    )


def _legend(found: Heatmap) -> Iterator[str]:
    y, side = _HEIGHT - 30, 14
    yield _label(_LEFT, y + 12, f"{found.what} in a cell: 1", "start")
    start = _LEFT + 150
    for shade in range(len(_COLOURS)):
        yield f'<rect class="h{shade}" x="{start + shade * side}" y="{y}" width="{side}" height="{side}"/>'
    yield _label(start + len(_COLOURS) * side + 8, y + 12, count(found.most), "start")


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'

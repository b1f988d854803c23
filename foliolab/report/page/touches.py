# SPDX-License-Identifier: GPL-2.0-only
"""A heat map of a trace as a picture: place in the file over time, and as shades how often it was touched."""

from functools import partial
from itertools import groupby

from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from foliohost.report.heatmap import Heatmap, heatmap
from foliolab.report.columns import count
from foliolab.report.page.style import HEAT, Drawing, colour, figure, plain, styled
from foliolab.trace.format import Trace

_COLUMNS, _ROWS = 175, 80


def touches_drawing(trace: Trace, file: int, title: str) -> Drawing:
    """Of a file, by its index."""
    found = heatmap(trace, file, _COLUMNS, _ROWS)
    return Drawing(
        name="touches",
        title=f"{title}: {found.what} of {found.name}",
        remark="",
        source="",
        command="",
        draw=partial(_draw, found),
    )


@styled
def _draw(found: Heatmap, width: int) -> Figure:
    drawn = figure(width, 440)
    axes = drawn.subplots()
    plain(axes)
    for shade, runs in enumerate(make_runs(found)):
        if runs:
            axes.add_patch(PathPatch(Path.make_compound_path(*runs), color=colour(HEAT[shade]), linewidth=0))
    axes.set_xlim(0, found.time.end)
    axes.set_ylim(found.place.end, 0)
    axes.set_xlabel(", ".join(filter(None, (found.time.title, found.time.unit))))
    axes.set_ylabel(f"{found.place.title}, {found.place.unit}")
    handles = [Patch(color=colour(name)) for name in HEAT]
    labels = [f"{found.what} in a cell: 1", *[""] * (len(HEAT) - 2), count(found.most)]
    drawn.legend(handles, labels, loc="outside lower center", ncols=len(HEAT), frameon=False, handlelength=1.2)
    return drawn


def make_runs(found: Heatmap) -> list[list[Path]]:
    """Cells side by side that have a shade, for each shade."""
    wide, high = found.time.end / _COLUMNS, found.place.end / _ROWS
    paths: list[list[Path]] = [[] for _ in HEAT]
    for number, row in enumerate(found.cells):
        top, bottom = number * high, (number + 1) * high
        for shade, cells in groupby(enumerate(row), lambda cell: found.shade(cell[1], len(HEAT))):
            columns = [column for column, _ in cells]
            left, right = columns[0] * wide, (columns[-1] + 1) * wide
            if shade >= 0:
                corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
                paths[shade].append(Path(corners, closed=True))
    return paths

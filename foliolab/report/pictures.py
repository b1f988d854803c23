# SPDX-License-Identifier: GPL-2.0-only
"""Pictures: what faults read, times of disks, touches of a file; and those that documents have."""

import pathlib
from collections.abc import Sequence
from itertools import cycle, groupby
from math import nan

from matplotlib.axes import Axes
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from foliohost.report.heatmap import heatmap
from foliohost.trace import Trace
from foliolab.campaign.sample import Sample
from foliolab.errors import NoResult
from foliolab.experiment.load import find_experiment
from foliolab.report.columns import count, mib
from foliolab.report.devices import by_device, medians, over, pair_of
from foliolab.report.reads import READ_AHEAD_KB, READS, Panel, RecordedReads
from foliolab.report.svg import COLOURS, HEAT, Picture, figure, ratio_rows, to_svg
from foliolab.report.titles import device_title, titles_of
from foliolab.report.view import View, make_views

_MIB = 1 << 20
_LEAST_RUN = 0.006
"""What is smaller is drawn as so much of the file, or it could not be seen."""
_OF_DEVICES = ("adaptive", "published", "off", "rival", "loss")
_COLUMNS, _ROWS = 175, 80
"""Of the cells in which touches are counted."""
_TIMES = pathlib.Path("docs/times.svg")
"""The picture of times by device, in the repository."""
_REPORTS, _WINDOW_KB = "reports", 128
"""What it is of: an experiment, with the default window."""


def of_documents(reads: RecordedReads | None, samples: Sequence[Sample]) -> dict[pathlib.Path, str]:
    reports = [
        each
        for each in samples
        if each.experiment == _REPORTS and each.device and each.cell["read_ahead_kb"] == _WINDOW_KB
    ]
    found = {READS: to_svg(reads_picture(reads))} if reads else {}
    if reports:
        (disks,) = by_device(make_views(reports, {_REPORTS: find_experiment(_REPORTS)}))
        found[_TIMES] = to_svg(times_picture(disks, _TIMES.stem))
    return found


def reads_picture(recorded: RecordedReads) -> Picture:
    """Place in the file over faults in their order, of two panels. A mark is what one fault made the kernel read."""
    before, after = recorded.panels
    drawn = figure(360)
    rooms = drawn.subplots(1, 2, sharey=True)
    faults = max(panel.reads.faults for panel in recorded.panels)
    for axes, panel, name in zip(rooms, recorded.panels, ("off", "adaptive"), strict=True):
        _draw_reads(axes, panel, name, recorded.file_bytes)
        axes.set_xlim(0, faults + 1)
        axes.set_ylim(recorded.file_bytes / _MIB, 0)
        axes.set_xlabel("page faults, in order")
    rooms[0].set_ylabel("place in the file, MiB")
    title = (
        f"Windows of {READ_AHEAD_KB >> 10} MiB, {mib(recorded.touched_bytes)} MiB touched: "
        f"{before.title} reads {mib(before.reads.size)} MiB, {after.title} {mib(after.reads.size)} MiB"
    )
    return Picture("reads", title, drawn)


def _draw_reads(axes: Axes, panel: Panel, name: str, file_bytes: int) -> None:
    faults, places = [], []
    for run in panel.reads.runs:
        extra = max(_LEAST_RUN * file_bytes - run.size, 0) / 2
        faults += [run.fault, run.fault, nan]
        places += [(run.offset - extra) / _MIB, (run.offset + run.size + extra) / _MIB, nan]
    axes.plot(faults, places, color=COLOURS[name], linewidth=2.2, solid_capstyle="butt")
    reads = panel.reads
    axes.set_title(
        f"{panel.title}: {mib(reads.size)} MiB, read by {count(reads.reading)} of {count(reads.faults)} faults"
    )


def times_picture(views: Sequence[View], name: str) -> Picture:
    """What programs take with the window over what they take without, in each cell, of views as of ``by_device``.

    NoResult if no cell was measured with both.
    """
    before, after = pair_of(views)
    times = {place: ratio for place, ratio in over(medians(views, "seconds"), before).items() if place[2] == after}
    if not times:
        raise NoResult(f"No case was measured with {after} and {before} on a timed disk.")
    cells = list(dict.fromkeys(cell for cell, *_ in times))
    names = titles_of(views[0].group.experiment, cells)
    drawn, axes = ratio_rows(names, list(times.values()), "seconds with the adaptive window over those without")
    for device, shade in zip((view.group.device for view in views), cycle(_OF_DEVICES), strict=False):
        found = {cells.index(cell): ratio for (cell, disk, _), ratio in times.items() if disk == device}
        axes.plot(
            list(found.values()), list(found), "o", color=COLOURS[shade], markersize=7, label=device_title(device)
        )
    drawn.legend(loc="outside lower center", ncols=len(views), frameon=False)
    faster = sum(ratio < 1 for ratio in times.values())
    title = f"{faster} of {len(times)} times are shorter with the adaptive window"
    return Picture(name, title, drawn)


def touches_picture(trace: Trace, file: int, title: str) -> Picture:
    """Place in a file, by its index, over time, and as shades how often it is touched; ``title`` names the trace."""
    found = heatmap(trace, file, _COLUMNS, _ROWS)
    wide, high = found.time.end / _COLUMNS, found.place.end / _ROWS
    drawn = figure(440)
    axes = drawn.subplots()
    runs: dict[int, list[Path]] = {}
    for number, row in enumerate(found.cells):
        top, bottom = number * high, (number + 1) * high
        for shade, cells in groupby(enumerate(row), lambda cell: found.shade(cell[1], len(HEAT))):
            columns = [column for column, _ in cells]
            left, right = columns[0] * wide, (columns[-1] + 1) * wide
            corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
            runs.setdefault(shade, []).append(Path(corners, closed=True))
    for shade, paths in runs.items():
        if shade >= 0:
            axes.add_patch(PathPatch(Path.make_compound_path(*paths), color=COLOURS[HEAT[shade]], linewidth=0))
    axes.set_xlim(0, found.time.end)
    axes.set_ylim(found.place.end, 0)
    axes.set_xlabel(", ".join(filter(None, (found.time.title, found.time.unit))))
    axes.set_ylabel(f"{found.place.title}, {found.place.unit}")
    handles = [Patch(color=COLOURS[name]) for name in HEAT]
    labels = [f"{found.what} in a cell: 1", *[""] * (len(HEAT) - 2), count(found.most)]
    drawn.legend(handles, labels, loc="outside lower center", ncols=len(HEAT), frameon=False, handlelength=1.2)
    return Picture(f"touches-{title}", f"{title}: {found.what} of {found.name}", drawn)

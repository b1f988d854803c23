# SPDX-License-Identifier: GPL-2.0-only
"""Pictures for documents: what faults read, what ways to read cost, who loses, times of disks, touches of a file."""

from collections.abc import Sequence
from itertools import cycle, groupby
from math import nan

from matplotlib.axes import Axes
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.ticker import LogLocator, PercentFormatter

from foliohost.report.heatmap import heatmap
from foliolab.analyse.differences import Change, Difference
from foliolab.analyse.losses import Matrix, make_pairs
from foliolab.errors import NoResult
from foliolab.experiment.metrics import METRICS
from foliolab.grouped import grouped
from foliolab.report.columns import count, mib, with_unit
from foliolab.report.devices import medians, over, pair_of
from foliolab.report.reads import Panel, RecordedReads
from foliolab.report.svg import COLOURS, HEAT, Picture, figure, ratio_rows
from foliolab.report.view import View
from foliolab.simulate.rows import WORSE_THAN_OFF, RegretRow
from foliolab.trace.format import Trace

_MIB = 1 << 20
_LEAST_RUN = 0.006
"""What is smaller is drawn as so much of the file, or it could not be seen."""
_WAYS = {
    "off": ("Linux 6.12", "off"),
    "published": ("published rules, Linux 7.3", "published"),
    "xnu": ("macOS", "rival"),
    "adaptive": ("the adaptive window", "adaptive"),
}
"""Variants whose costs are drawn: what they are called, and their colours."""
_LEAST_RATIO = 0.01
"""What is less is drawn there, as an arrow."""
_CHANGES = {Change.WORSE: "loss", Change.BETTER: "gain"}
"""What boots show, and its colours; all else is hollow and grey."""
_MOST_MARKS = 40
_OF_DEVICES = ("adaptive", "published", "off", "rival", "loss")
_COLUMNS, _ROWS = 175, 80
"""Of the cells in which touches are counted."""


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
        f"For {mib(recorded.touched_bytes)} MiB of touched pages {before.title} reads {mib(before.reads.size)} MiB, "
        f"{after.title} {mib(after.reads.size)} MiB"
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


def cost_picture(rows: Sequence[RegretRow]) -> Picture:
    """For each way to read the share of cells of the model that cost at most so many times the best window's.

    Of rows that have ``adaptive`` in all cells.
    """
    found = {variant: sorted(row.regret for row in rows if row.variant == variant) for variant in _WAYS}
    ours = found["adaptive"]
    most = max(max(regrets, default=1) for regrets in found.values()) * 1.2
    drawn = figure(400)
    axes = drawn.subplots()
    axes.grid()
    axes.set_xscale("log")
    axes.set_xlim(0.7, most)
    axes.set_ylim(0, 1.02)
    for variant, regrets in found.items():
        label, shade = _WAYS[variant]
        shares = {round(regret, 2): number / len(regrets) for number, regret in enumerate(regrets, 1)}
        width = 2.6 if regrets is ours else 1.6
        axes.step([*shares], [*shares.values()], where="post", color=COLOURS[shade], linewidth=width, label=label)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.set_xlabel("cost, at most so many times that of the best fixed window")
    axes.set_ylabel("share of all cells")
    axes.legend(loc="lower right", frameon=False)
    near = sum(regret <= WORSE_THAN_OFF for regret in ours) / len(ours) * 100
    title = (
        f"In {near:.0f} % of {len(ours):,} cells ours costs at most 1.05 times the best window, {ours[-1]:.2f} at worst"
    )
    return Picture("cost", title, drawn)


def losses_pictures(matrix: Matrix, name: str) -> list[Picture]:
    """One for each variant that something was compared of, whose name follows this one."""
    ends = dict.fromkeys(end for pair in make_pairs(matrix) for end in (pair.deciding, pair.gain) if end)
    of_variant = grouped(sorted(ends, key=lambda each: -each.loss), lambda each: each.variant)
    return [_losses_picture(matrix, variant, marks, f"{name}-{variant}") for variant, marks in of_variant.items()]


def _losses_picture(matrix: Matrix, variant: str, marks: Sequence[Difference], name: str) -> Picture:
    """What decides in each workload, and what it gains besides. Of many, all that boots show, and what is greatest."""
    by_weight = sorted(marks, key=lambda each: (each.change not in _CHANGES, -abs(each.loss)))
    kept = [each for each in marks if each in by_weight[:_MOST_MARKS]]
    labels = [f"{each.workload}: {with_unit(METRICS[each.metric])}" for each in kept]
    ends = [_ratio(end) for each in kept for end in (each.loss, *(each.interval or ()))]
    drawn, axes = ratio_rows(labels, ends, f"times {matrix.baseline}, with intervals of 95 %")
    for row, each in enumerate(kept):
        _mark(axes, row, each)
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(kept)), [_spelled(each) for each in kept])
    right.spines[:].set_visible(False)
    right.tick_params(length=0)
    worse, better = (sum(each.change is change for each in marks) for change in _CHANGES)
    title = f"{variant} against {matrix.baseline}: {worse} losses and {better} gains are shown, of {len(marks)} metrics"
    return Picture(name, title, drawn)


def _mark(axes: Axes, row: int, each: Difference) -> None:
    shade = COLOURS[_CHANGES.get(each.change, "same")]
    if each.interval:
        axes.plot([_ratio(end) for end in each.interval], [row, row], color=shade, linewidth=2)
    ratio = _ratio(each.loss)
    inside = shade if each.change in _CHANGES else COLOURS["card"]
    axes.plot([ratio], [row], "<" if ratio <= _LEAST_RATIO else "o", color=shade, markerfacecolor=inside, markersize=7)


def _ratio(loss: float) -> float:
    return max(1 + loss, _LEAST_RATIO)


def _spelled(each: Difference) -> str:
    interval = " ({:+.1f} to {:+.1f})".format(*(end * 100 for end in each.interval)) if each.interval else ""
    return f"{each.loss * 100:+.1f} %{interval}"


def times_picture(views: Sequence[View], name: str) -> Picture:
    """What programs take with the window over what they take without, in each cell, of views as of ``by_device``.

    NoResult if no cell was measured with both.
    """
    before, after = pair_of(views)
    times = {place: ratio for place, ratio in over(medians(views, "seconds"), before).items() if place[2] == after}
    if not times:
        raise NoResult(f"No case was measured with {after} and {before} on a timed disk.")
    cells = list(dict.fromkeys(cell for cell, *_ in times))
    labels = [cell.label for cell in cells]
    drawn, axes = ratio_rows(labels, list(times.values()), f"seconds of {after} over those of {before}")
    for device, shade in zip((view.group.device for view in views), cycle(_OF_DEVICES), strict=False):
        found = {cells.index(cell): ratio for (cell, disk, _), ratio in times.items() if disk == device}
        axes.plot(list(found.values()), list(found), "o", color=COLOURS[shade], markersize=7, label=device)
    drawn.legend(loc="outside lower center", ncols=len(views), frameon=False)
    faster = sum(ratio < 1 for ratio in times.values())
    title = f"{views[0].group.experiment}: {faster} of {len(times)} times are shorter with the adaptive window"
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

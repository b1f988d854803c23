# SPDX-License-Identifier: GPL-2.0-only
"""Pictures: what faults read, times of disks, regrets, losses; and those that documents have."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from math import nan
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from foliolab.analyse.compared import Question
from foliolab.analyse.differences import Change
from foliolab.analyse.losses import Matrix, make_matrix, make_pairs
from foliolab.arch import X86_64
from foliolab.campaign.sample import Sample
from foliolab.errors import NoResult
from foliolab.experiment.load import find_experiment
from foliolab.experiment.metrics import METRICS
from foliolab.report.columns import count, mib, with_unit
from foliolab.report.devices import by_device, intervals, over, pair_of
from foliolab.report.losses import passed_over
from foliolab.report.reads import READ_AHEAD_KB, READS, Panel, RecordedReads
from foliolab.report.svg import COLOURS, Picture, figure, ratio_rows, rows_of, to_svg
from foliolab.report.titles import device_title, titles_of
from foliolab.report.view import View, make_views
from foliolab.simulate.suite import FAMILIES, PATTERNS, REPORTS, TRACES

_MIB = 1 << 20
_LEAST_RUN = 0.006
"""What is smaller is drawn as so much of the file, or it could not be seen."""
_OF_DEVICES = ("adaptive", "published", "off", "rival", "loss")
_TIMES = Path("docs/times.svg")
"""The picture of times by device, in the repository."""
_REPORTS, _WINDOW_KB = "reports", 128
"""What it is of: an experiment, with the default window."""
_REGRETS, _LOSSES = Path("docs/regret.svg"), Path("docs/workloads.svg")
_POLICIES = {
    "adaptive": ("adaptive window", "adaptive"),
    "first-steps": ("first steps for mainline", "published"),
    "off": ("Linux 6.12", "off"),
    "linux-7.3": ("Linux 7.3", "loss"),
    "xnu": ("macOS", "rival"),
}
"""Ways to read of the model that the picture of regrets has, each with its title and colour."""
_GROUPS = {
    PATTERNS: "access patterns",
    FAMILIES: "later patterns",
    TRACES: "traces of stores",
    REPORTS: "cases that users reported",
}
_MOST_TIMES = 20
"""Where curves of regrets are cut."""
_CHANGES = {Change.BETTER: "gain", Change.WORSE: "loss", Change.SUSPECTED: "loss"}
"""Colours of losses and gains that count."""


def of_documents(
    reads: RecordedReads | None, samples: Sequence[Sample], regrets: Sequence[Mapping[str, Any]]
) -> dict[Path, str]:
    """The pictures that can be drawn, by their files in the repository; ``regrets`` are as of ``summary_to_json``."""
    reports = [
        each
        for each in samples
        if each.experiment == _REPORTS
        and each.device
        and each.cell["read_ahead_kb"] == _WINDOW_KB
        and (each.arch, each.page_size, each.scale) == (X86_64.name, X86_64.page_sizes[0], "quick")
    ]
    found = {READS: to_svg(reads_picture(reads))} if reads else {}
    if reports:
        (disks,) = by_device(make_views(reports, {_REPORTS: find_experiment(_REPORTS)}))
        found[_TIMES] = to_svg(times_picture(disks, _TIMES.stem))
    question = Question("unpatched", ["adaptive"], X86_64.name, X86_64.page_sizes[0], None)
    parts = [question.from_store(part, samples) for part in question.parts(["workloads"], "quick", [], [])]
    matrix = make_matrix(parts, baseline=question.baseline)
    if matrix.differences:
        found[_LOSSES] = to_svg(losses_picture(matrix, _LOSSES.stem))
    return found | {_REGRETS: to_svg(regret_picture(regrets, _REGRETS.stem))}


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
    times = {place: ratio for place, ratio in over(views, "seconds", before).items() if place[2] == after}
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
    known = [found for place, found in intervals(views, "seconds", before).items() if place in times]
    shorter, longer = sum(high < 0 for _, high in known), sum(low > 0 for low, _ in known)
    title = f"{shorter} of {len(times)} times are shown to be shorter with the adaptive window, {longer} to be longer"
    return Picture(name, title, drawn)


def regret_picture(regrets: Sequence[Mapping[str, Any]], name: str) -> Picture:
    """Times over those with the fastest fixed window, from the best cell of the model to the worst, by group."""
    drawn = figure(560)
    rooms = drawn.subplots(2, 2, sharex=True, sharey=True)
    for axes, (group, heading) in zip(rooms.flat, _GROUPS.items(), strict=True):
        times = {each["variant"]: each["time_percentiles"] for each in regrets if each["group"] == group}
        for policy, (title, shade) in _POLICIES.items():
            axes.plot(range(101), times[policy], color=COLOURS[shade], linewidth=2, label=title)
        axes.axhline(1, color=COLOURS["muted"], linewidth=1)
        axes.set_yscale("log")
        axes.set_ylim(0.4, _MOST_TIMES)
        axes.set_yticks([0.5, 1, 2, 5, 10, 20], labels=["0.5", "1", "2", "5", "10", "20"])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xlim(0, 100)
        axes.grid(axis="y")
        axes.set_title(heading)
    for axes in rooms[1]:
        axes.set_xlabel("cells, from the least multiple to the greatest, %")
    for axes in rooms[:, 0]:
        axes.set_ylabel("multiples")
    drawn.legend(*rooms.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    title = f"Time in the model, in multiples of the fastest fixed window's, cut at {_MOST_TIMES}; lower is better"
    return Picture(name, title, drawn)


def losses_picture(matrix: Matrix, name: str) -> Picture:
    """The metric that decides in each workload, and by how much it is worse than the baseline's, with its interval.

    Marks are hollow where tables have parentheses.
    """
    found = [pair.deciding for pair in make_pairs(matrix)]
    drawn, axes = rows_of([f"{each.workload}, {with_unit(METRICS[each.metric])}" for each in found])
    axes.axvline(0, color=COLOURS["muted"], linewidth=1)
    axes.set_xlabel(f"% more than {matrix.baseline}; left of 0 is better")
    for row, each in enumerate(found):
        shade = COLOURS[_CHANGES.get(each.change, "same")]
        low, high = (each.loss, each.loss) if each.repeats or not each.interval else each.interval
        axes.plot([low * 100, high * 100], [row, row], color=shade, linewidth=3, solid_capstyle="round")
        mark: Literal["none", "full"] = "none" if passed_over(each, matrix.threshold) else "full"
        axes.plot([each.loss * 100], [row], "o", color=shade, markersize=7, fillstyle=mark)
    return Picture(
        name, "What decides in each workload, with its 95 % interval; hollow was not shown, or is of no account", drawn
    )

# SPDX-License-Identifier: GPL-2.0-only
"""What page faults of one file read, before and after: place in the file over faults in their order."""

from functools import partial
from math import nan

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foliolab.report.columns import count, mib
from foliolab.report.page.style import WIDE, Drawing, colour, figure, plain, styled
from foliolab.report.picture import Panel, Picture

_MIB = 1 << 20
_LEAST = 0.006
"""What is smaller is drawn as so much of the file, or it could not be seen."""
_COLOURS = ("off", "adaptive")


def reads_drawing(picture: Picture) -> Drawing:
    """Of a picture of two panels."""
    before, after = picture.panels
    return Drawing(
        name="reads",
        title=f"For {mib(picture.touched_bytes)} MiB of touched pages {before.title} reads {mib(before.reads.size)} "
        f"MiB, {after.title} {mib(after.reads.size)} MiB",
        remark=f"{picture.remark}. Each mark is what one page fault made the kernel read, as high as it is long, "
        "but for the smallest, which could not be seen.",
        source=f"kernel {picture.kernel}, n = 1 boot, {picture.backend}",
        command="./lab demo --picture docs/reads.svg",
        draw=partial(_draw, picture),
        rows=(
            ("", "MiB read", "page faults", "that read"),
            *(
                (each.title, mib(each.reads.size), count(each.reads.faults), count(each.reads.reading))
                for each in picture.panels
            ),
        ),
    )


@styled
def _draw(picture: Picture, width: int) -> Figure:
    wide = width >= WIDE
    drawn = figure(width, 360 if wide else 620)
    faults = max(panel.reads.faults for panel in picture.panels)
    rooms = drawn.subplots(1, 2, sharey=True) if wide else drawn.subplots(2, 1, sharex=True)
    for axes, panel, name in zip(rooms, picture.panels, _COLOURS, strict=True):
        _panel(axes, panel, name, picture.file_bytes, faults, ", " if wide else "\n")
    rooms[0].set_ylabel("place in the file, MiB")
    if not wide:
        rooms[1].set_ylabel("place in the file, MiB")
    for axes in rooms if wide else rooms[1:]:
        axes.set_xlabel("page faults, in order")
    return drawn


def _panel(axes: Axes, panel: Panel, name: str, file_bytes: int, faults: int, comma: str) -> None:
    plain(axes)
    least = _LEAST * file_bytes
    faults_of, places = [], []
    for run in panel.reads.runs:
        extra = max(least - run.size, 0) / 2
        faults_of += [run.fault, run.fault, nan]
        places += [(run.offset - extra) / _MIB, (run.offset + run.size + extra) / _MIB, nan]
    axes.plot(faults_of, places, color=colour(name), linewidth=2.2, solid_capstyle="butt", gid="reads")
    axes.set_xlim(0, faults + 1)
    axes.set_ylim(file_bytes / _MIB, 0)
    reads = panel.reads
    title = f"{panel.title}: {mib(reads.size)} MiB{comma}read by {count(reads.reading)} of {count(reads.faults)} faults"
    axes.set_title(title)

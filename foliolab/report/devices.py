# SPDX-License-Identifier: GPL-2.0-only
"""What the adaptive window takes and costs on timed disks, against the same without, and against other kernels."""

from collections.abc import Callable, Iterable, Sequence
from statistics import geometric_mean

from foliolab.analyse.paired import shift
from foliolab.analyse.rows import Spread, pairs, place_of, quotient
from foliolab.device import device_of
from foliolab.errors import NoResult
from foliolab.experiment.cell import Cell, common
from foliolab.experiment.metrics import METRICS
from foliolab.grouped import grouped
from foliolab.report.columns import Column, rate, seconds
from foliolab.report.titles import device_title, titles_of
from foliolab.report.view import View

_PAIRS = ("off", "adaptive"), ("unpatched", "adaptive"), ("off-mglru", "adaptive-mglru"), ("debian", "module")
"""Without the window and with it, on either LRU, and on a kernel of Debian's.

A table shows the first pair with both variants, else the first with one.
"""

_Place = tuple[Cell, str, str]
"""A cell, a disk and a variant."""
TimedFigures = dict[_Place, float]


def by_device(views: Iterable[View]) -> list[list[View]]:
    """Those that differ in nothing but the timed disk together, that with the least latency first.

    NoResult if there are none.
    """
    timed = [view for view in views if view.group.device]
    if not timed:
        raise NoResult("Nothing was measured on timed disks.")
    timed.sort(key=lambda view: device_of(view.group.device).latency_us)
    return list(grouped(timed, lambda view: place_of(view.group)[:-1]).values())


def pair_of(views: Sequence[View]) -> tuple[str, str]:
    """The variants without the window and with it."""
    variants = {row.variant for view in views for row in view.rows}
    return next(pair for most in (2, 1, 0) for pair in _PAIRS if len(variants.intersection(pair)) >= most)


def medians(views: Sequence[View], metric: str) -> TimedFigures:
    return {place: spread.median for place, spread in _spreads(views, metric).items()}


def over(views: Sequence[View], metric: str, before: str) -> TimedFigures:
    """Each in multiples of that of the variant ``before``, as ``quotient`` has it; without those that have none."""
    found = {place: quotient(*spreads) for place, spreads in _beside(views, metric, before).items()}
    return {place: ratio for place, ratio in found.items() if ratio is not None}


def intervals(views: Sequence[View], metric: str, before: str) -> dict[_Place, tuple[float, float]]:
    """Of 95 % for what pairs of boots differ by from the variant ``before``; without those of too few boots."""
    found = {}
    for place, (mine, base) in _beside(views, metric, before).items():
        differences = [one - other for one, other in pairs(mine, base)]
        if differences and (interval := shift(differences).interval):
            found[place] = interval
    return found


def _beside(views: Sequence[View], metric: str, before: str) -> dict[_Place, tuple[Spread, Spread]]:
    """Each with that of the variant ``before``."""
    found = _spreads(views, metric)
    return {place: (spread, found[base]) for place, spread in found.items() if (base := (*place[:2], before)) in found}


def _spreads(views: Sequence[View], metric: str) -> dict[_Place, Spread]:
    return {
        (row.cell, view.group.device, row.variant): row.metrics[metric]
        for view in views
        for row in view.rows
        if metric in row.metrics
    }


def device_columns(views: Sequence[View]) -> list[Column]:
    """A row for each cell. For each disk there are columns for the seconds of the variant with the window, and for its
    metric of the table, over those of the variant without; for the seconds of the latter; and for those of each other
    variant and kernel over them. What all cells share is in the title of the first column. The last row has geometric
    means of ratios.

    What was not measured is blank, and what was measured in no cell has no column.
    """
    cells = list(dict.fromkeys(row.cell for view in views for row in view.rows))
    shared = common(cells)
    labels = [cell.without(dict(shared)).label for cell in cells]
    devices = [view.group.device for view in views]
    before, after = pair_of(views)
    taken, metric = medians(views, "seconds"), views[0].metric
    times, costs = (over(views, name, before) for name in ("seconds", metric))
    others = dict.fromkeys(row.variant for view in views for row in view.rows if row.variant not in (before, after))

    def column(title: str, device: str, variant: str, figures: TimedFigures, spell: Callable[[float], str]) -> Column:
        found = [figures.get((cell, device, variant)) for cell in cells]
        known = [figure for figure in found if figure is not None]
        mean = rate(geometric_mean(known)) if known and all(known) and spell is rate else ""
        texts = ["" if figure is None else spell(figure) for figure in found]
        return Column((f"{title}:", device), (*texts, mean), 0)

    cell = ", ".join(("cell", *(f"{name} {value}" for name, value in shared)))
    columns = [
        *(column("seconds", device, after, times, rate) for device in devices),
        *(column(" ".join(METRICS[metric].title).strip(), device, after, costs, rate) for device in devices),
        *(column(f"seconds of {before}", device, before, taken, seconds) for device in devices),
        *(column(f"{variant} over {before}", device, variant, times, rate) for variant in others for device in devices),
    ]
    rows = Column(("", cell), (*labels, "geometric mean"), 0, left=True)
    return [rows, *(each for each in columns if any(each.cells))]


def seconds_columns(views: Sequence[View]) -> list[Column]:
    """A row for each cell, and a column for each disk: seconds without the window → with it.

    Cells and disks have their titles; cells that would share one have their labels. What was not measured is blank.
    """
    cells = list(dict.fromkeys(row.cell for view in views for row in view.rows))
    before, after = pair_of(views)
    taken = medians(views, "seconds")

    def pair(cell: Cell, device: str) -> str:
        found = [taken.get((cell, device, variant)) for variant in (before, after)]
        known = [seconds(figure) for figure in found if figure is not None]
        return " → ".join(known) if len(known) == len(found) else ""

    names = titles_of(views[0].group.experiment, cells) if views else ()
    return [
        Column(("", "seconds"), names, 0, left=True),
        *(
            Column(("", device_title(device)), tuple(pair(cell, device) for cell in cells), 0)
            for device in (view.group.device for view in views)
        ),
    ]

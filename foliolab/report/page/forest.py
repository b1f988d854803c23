# SPDX-License-Identifier: GPL-2.0-only
"""Which workloads lose and gain: a mark for each, with its interval where there is one."""

from collections.abc import Sequence
from functools import partial
from math import log

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from foliolab.analyse.differences import Change, Difference
from foliolab.analyse.losses import Matrix
from foliolab.experiment.metrics import METRICS
from foliolab.grouped import grouped
from foliolab.report.page.style import WIDE, Drawing, colour, figure, plain, styled

_LEAST = 0.01
"""Times the baseline; what is less is drawn there, as an arrow."""
_TICKS = (1, 0.5, 2, 0.1, 10, 0.02, 4, 0.25, 0.05, 1.25)
"""What matters most first."""
_COLOURS = {Change.WORSE: "loss", Change.BETTER: "gain"}
"""Of what boots show; all else is grey."""
_ROW, _NARROW_ROW, _EDGES = 21, 48, 86
"""Pixels of a row, and of all that is above and below."""
_MOST = 40
"""Lines that are drawn; the table has all."""
_BASELINES = {"unpatched": "unpatched Linux", "off": "this kernel switched off"}
_MGLRU = "-mglru"


def make_lines(matrix: Matrix, variant: str) -> list[Difference]:
    """The metric that loses most of each workload under ``variant``, and the one that gains most, if either is of any
    account; else what differs most. The greatest loss first."""
    found: list[Difference] = []
    of_variant = (each for each in matrix.differences if each.variant == variant)
    for differences in grouped(of_variant, lambda each: each.workload).values():
        counting = [each for each in differences if each.counts(each.loss, matrix.threshold)]
        counting.sort(key=lambda each: -each.loss)
        ends = (counting[0], counting[-1]) if counting else ()
        both = [each for each, sign in zip(ends, (1, -1), strict=False) if each.loss * sign > 0]
        found += both or [max(differences, key=lambda each: abs(each.loss))]
    return sorted(found, key=lambda each: -each.loss)


def _drawn(lines: Sequence[Difference]) -> tuple[Difference, ...]:
    """Those that boots show, and of the others as many that lose most as that gain most, in their order."""
    others = [number for number, line in enumerate(lines) if line.change not in _COLOURS]
    room = max(_MOST - len(lines) + len(others), 0)
    left_out = set(others[(room + 1) // 2 : max(len(others) - room // 2, 0)])
    return tuple(line for number, line in enumerate(lines) if number not in left_out)


def _ticks(low: float, high: float, least: float) -> list[float]:
    """Those that are so much of the axis from each other."""
    found: list[float] = []
    for tick in _TICKS:
        if low <= tick <= high and all(abs(log(tick / other)) >= least * log(high / low) for other in found):
            found.append(tick)
    return found


def _against(baseline: str) -> str:
    name = baseline.removesuffix(_MGLRU)
    return _BASELINES.get(name, name) + (" with MGLRU" if baseline.endswith(_MGLRU) else "")


def _metric(line: Difference) -> str:
    return " ".join(part for part in METRICS[line.metric].title if part)


def _spelled(line: Difference) -> str:
    interval = f" ({_percent(line.interval[0])} to {_percent(line.interval[1])})" if line.interval else ""
    return f"{_percent(line.loss)} %{interval}"


def forest_drawing(
    name: str, what: str, lines: Sequence[Difference], baseline: str, source: str, command: str
) -> Drawing:
    """Of at least one line; ``what`` stands in the title."""
    drawn, against = _drawn(lines), _against(baseline)
    workloads = len({line.workload for line in lines})
    worse, better = ({line.workload for line in lines if line.change is change} for change in _COLOURS)
    boots = sorted({line.n for line in lines})
    n = f"n = {boots[0]}" if len(boots) == 1 else f"n = {boots[0]} to {boots[-1]}"
    are = "is" if len(worse) == 1 else "are"
    bars = "Bars are 95 % intervals." if any(line.interval for line in drawn) else f"{n} gives no interval."
    some = (
        f"Of {len(lines)} marks {len(drawn)} are drawn: what is shown, and the ends of the rest. "
        if len(drawn) < len(lines)
        else ""
    )
    return Drawing(
        name=name,
        title=f"{what}: {len(worse)} of {workloads} workloads {are} shown to lose by some metric, and {len(better)} "
        f"to gain, against {against}",
        remark="For each workload the metric that loses most, and the one that gains most. Red is shown to be worse, "
        f"blue to be better; hollow is what boots do not show, or what is too little to count. {some}{bars} An arrow: "
        f"less than {_LEAST:g} times.",
        source=f"{source}, {n}",
        command=command,
        draw=partial(_draw, drawn, against),
        rows=(
            ("workload", "metric", f"against {against}", "n"),
            *((line.workload, _metric(line), _spelled(line), str(line.n)) for line in lines),
        ),
    )


@styled
def _draw(lines: Sequence[Difference], against: str, width: int) -> Figure:
    wide = width >= WIDE
    drawn = figure(width, (_ROW if wide else _NARROW_ROW) * len(lines) + _EDGES)
    axes = drawn.subplots()
    plain(axes, grid="x")
    axes.set_xscale("log")
    axes.axvline(1, color=colour("muted"), linewidth=1)
    for row, line in enumerate(lines):
        _mark(axes, row, line)
    least = min(_ratio(end) for line in lines for end in (line.loss, *(line.interval or ())))
    most = max(_ratio(end) for line in lines for end in (line.loss, *(line.interval or ())))
    axes.set_xlim(min(least / 1.3, 0.8), max(most * 1.2, 1.5))
    low, high = axes.get_xlim()
    ticks = _ticks(low, high, 0.07 if wide else 0.12)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel(f"in multiples of {against}\nleft of 1 is better")
    axes.set_ylim(len(lines) - 0.5, -0.5 if wide else -0.9)
    if wide:
        axes.set_yticks(range(len(lines)), [f"{line.workload}: {_metric(line)}" for line in lines])
    else:
        axes.set_yticks(())
        for row, line in enumerate(lines):
            _label(axes, row, line)
    if wide:
        right = axes.secondary_yaxis("right")
        right.set_yticks(range(len(lines)), [_spelled(line) for line in lines])
        right.spines[:].set_visible(False)
        right.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return drawn


def _label(axes: Axes, row: int, line: Difference) -> None:
    """Above a mark, where there is no room beside it."""
    axes.annotate(
        f"{line.workload}\n{_metric(line)}, {_percent(line.loss)} %",
        (0, row - 0.2),
        xycoords=("axes fraction", "data"),
        va="bottom",
        fontsize=10,
        color=colour("muted"),
        bbox={"facecolor": colour("card"), "edgecolor": "none", "pad": 0.5},
        in_layout=False,
    )


def _mark(axes: Axes, row: int, line: Difference) -> None:
    shade = colour(_COLOURS.get(line.change, "same"))
    if line.interval:
        low, high = (_ratio(end) for end in line.interval)
        axes.plot([low, high], [row, row], color=shade, linewidth=2)
    ratio = _ratio(line.loss)
    marker = "<" if ratio <= _LEAST else "o"
    inside = shade if line.change in _COLOURS else colour("card")
    axes.plot([ratio], [row], marker, color=shade, markerfacecolor=inside, markersize=7)


def _ratio(loss: float) -> float:
    return max(1 + loss, _LEAST)


def _percent(share: float) -> str:
    return f"{share * 100:+.1f}"

# SPDX-License-Identifier: GPL-2.0-only
"""What each way to read costs against the best fixed window, and ours against Linux 6.12, in all cells of the model."""

from collections.abc import Sequence
from functools import partial
from statistics import median

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator, PercentFormatter

from foliolab.report.page.style import WIDE, Drawing, colour, figure, plain, styled
from foliolab.simulate.rows import GOOD_OFF, WORSE_THAN_OFF, RegretRow
from foliolab.simulate.summary import by_way, ours

_SHOWN = {"off": "Linux 6.12", "published": "published rules, Linux 7.3", "xnu": "macOS", "adaptive": "this kernel"}
"""Variants that are drawn, ours above all others."""
_COLOURS = {"off": "off", "published": "published", "xnu": "rival", "adaptive": "adaptive"}


def cost_drawing(rows: Sequence[RegretRow], source: str) -> Drawing:
    """Of rows that have ``off`` and ``adaptive`` in all cells."""
    found = {variant: sorted(row.regret for row in rows if row.variant == variant) for variant in _SHOWN}
    regrets = {variant: values for variant, values in found.items() if values}
    spreads = by_way(rows)
    mine = regrets["adaptive"]
    near = sum(value <= WORSE_THAN_OFF for value in mine) / len(mine)
    return Drawing(
        name="cost",
        title=f"In {_percent(near)} of {len(mine):,} cells this kernel costs at most 5 % more than the best window, "
        f"at worst {mine[-1]:.2f} times as much",
        remark="A cell is a pattern or a trace with a memory, a read_ahead_kb and a device. The farther to the left "
        "and the higher a curve is, the better. The best window is the fixed one that costs least in this very cell, "
        "which nobody knows before; who changes the window meanwhile can cost less.",
        source=source,
        command="./lab simulate",
        draw=partial(_draw_curves, regrets),
        rows=(
            ("", "geometric mean", "median", "worst"),
            *(
                (
                    _SHOWN[variant],
                    f"{spreads[variant].mean:.3f}",
                    f"{median(values):.3f}",
                    f"{spreads[variant].worst:,.2f}",
                )
                for variant, values in regrets.items()
            ),
        ),
    )


def change_drawing(rows: Sequence[RegretRow], source: str) -> Drawing:
    """Ours over Linux 6.12 in each cell."""
    worst_first = sorted(ours(rows), key=lambda row: row.off_cost / row.cost)
    ratios = sorted(row.cost / row.off_cost for row in worst_first)
    lost = sum(ratio > WORSE_THAN_OFF for ratio in ratios)
    good = sum(row.lost for row in worst_first)
    gained = sum(ratio < 1 / WORSE_THAN_OFF for ratio in ratios)
    return Drawing(
        name="change",
        title=f"This kernel costs more than Linux 6.12 in {lost:,} of {len(ratios):,} cells, and less in {gained:,}",
        remark="Only what is over 5 % more (red) or less (blue) counts, and is shaded. In "
        f"{good:,} of those that lose Linux 6.12 is within {_percent(GOOD_OFF - 1)} of the best window. The worst is "
        f"{_place(worst_first[0])}: {ratios[-1]:.2f} times its cost.",
        source=source,
        command="./lab simulate --all",
        draw=partial(_draw_change, ratios),
        rows=(
            ("where it loses most", "Linux 6.12, times the best", "this kernel", "of its cost"),
            *(
                (_place(row), f"{row.off_regret:.2f}", f"{row.regret:.2f}", f"{row.cost / row.off_cost:.2f}")
                for row in worst_first[:10]
            ),
        ),
    )


def _place(row: RegretRow) -> str:
    return f"{row.pattern}, file {row.memory:g} times memory, read_ahead_kb {row.read_ahead_kb}, {row.device}"


@styled
def _draw_curves(regrets: dict[str, list[float]], width: int) -> Figure:
    drawn = figure(width, 400 if width >= WIDE else 380)
    axes = drawn.subplots()
    plain(axes, grid="both")
    axes.set_xscale("log")
    most = max(values[-1] for values in regrets.values())
    for variant, values in regrets.items():
        linewidth = 2.6 if variant == "adaptive" else 1.6
        steps = [values[0], *values, most * 1.2]
        shares = [0.0, *_shares(values), 1.0]
        axes.plot(steps, shares, color=colour(_COLOURS[variant]), linewidth=linewidth, label=_SHOWN[variant])
    tail = [(value, share) for value, share in zip(regrets["adaptive"], _shares(regrets["adaptive"]), strict=True)]
    tail = [(value, share) for value, share in tail if value > WORSE_THAN_OFF]
    if tail:
        places, heights = zip(*tail, strict=True)
        shade, label = colour("loss"), "this kernel, over 5 % more"
        axes.fill_between(places, heights, 1, color=shade, alpha=0.3, linewidth=0, label=label)
    axes.set_xlim(0.7, most * 1.2)
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_locator(LogLocator(numticks=9))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.set_xlabel("cost, at most so many times the best window's")
    axes.set_ylabel("share of all cells")
    axes.legend(loc="lower right", frameon=False, fontsize=11 if width >= WIDE else 10)
    return drawn


@styled
def _draw_change(ratios: list[float], width: int) -> Figure:
    drawn = figure(width, 340)
    axes = drawn.subplots()
    plain(axes, grid="y")
    axes.set_yscale("log")
    shares = _shares(ratios)
    axes.plot(shares, ratios, color=colour("ink"), linewidth=1.4)
    for name, where in (
        ("gain", [ratio < 1 / WORSE_THAN_OFF for ratio in ratios]),
        ("loss", [ratio > WORSE_THAN_OFF for ratio in ratios]),
    ):
        axes.fill_between(shares, ratios, 1, where=where, color=colour(name), alpha=0.35, linewidth=0)
    axes.axhline(1, color=colour("muted"), linewidth=0.8)
    lost = sum(ratio > WORSE_THAN_OFF for ratio in ratios) / len(ratios)
    gained = sum(ratio < 1 / WORSE_THAN_OFF for ratio in ratios) / len(ratios)
    bottom, top = ratios[0] * 0.7, max(ratios[-1] * 2.5, 10)
    axes.set_ylim(bottom, top)
    axes.set_xlim(0, 1)
    axes.text(0.02, 1.35, f"cheaper in {_percent(gained)} of cells", color=colour("gain"), weight="bold")
    axes.text(
        0.98, top * 0.72, f"dearer in {_percent(lost)}", color=colour("loss"), weight="bold", ha="right", va="top"
    )
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.set_ylabel("times Linux 6.12's cost")
    axes.set_xlabel("share of all cells, greatest gain first")
    return drawn


def _shares(values: Sequence[float]) -> list[float]:
    return [(number + 0.5) / len(values) for number in range(len(values))]


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"

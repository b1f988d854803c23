# SPDX-License-Identifier: GPL-2.0-only
"""Pattern against memory: what Linux 6.12 and this kernel cost there, as shades."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from foliolab.report.page.style import HEAT, WIDE, Drawing, colour, figure, plain, styled
from foliolab.simulate.rows import RegretRow
from foliolab.simulate.suite import TRACE
from foliolab.simulate.summary import spreads

_STEPS = (1.05, 1.2, 1.5, 2.0, 4.0, 20.0)
"""Where one shade ends and the next begins."""
_SHOWN = {"off": "Linux 6.12", "adaptive": "this kernel"}
_ROW, _EDGES = 17, 120
"""Pixels of a row, and of all that is above and below."""

Means = dict[tuple[str, float], float]
"""By pattern and how many times as large as memory the file is."""


def heat_drawing(rows: Sequence[RegretRow], source: str) -> Drawing:
    """Of rows that have ``off`` and ``adaptive`` in all cells."""
    means = {variant: _means(rows, variant) for variant in _SHOWN}
    patterns = list(dict.fromkeys(row.pattern for row in rows))
    memories = sorted({row.memory for row in rows})
    # The worst of ours first: what one looks for.
    patterns.sort(key=lambda pattern: -max(means["adaptive"].get((pattern, memory), 0) for memory in memories))
    over = {variant: sum(value > _STEPS[2] for value in found.values()) for variant, found in means.items()}
    return Drawing(
        name="heat",
        title=f"In {over['adaptive']} of {len(means['adaptive'])} pairs of pattern and memory this kernel costs over "
        f"{_STEPS[2]:g} times the best window, and Linux 6.12 in {over['off']}",
        remark="Each square is the geometric mean over all devices and windows, in multiples of the best fixed window. "
        "Empty is where the file is too small for such a memory. What is worst for this kernel stands first.",
        source=source,
        command="./lab simulate --all",
        draw=partial(_draw, means, patterns, memories),
        rows=_rows(means, patterns, memories),
    )


def _means(rows: Sequence[RegretRow], variant: str) -> Means:
    found = spreads((row for row in rows if row.variant == variant), lambda row: (row.pattern, row.memory))
    return {place: each.mean for place, each in found.items()}


def _rows(means: dict[str, Means], patterns: Sequence[str], memories: Sequence[float]) -> tuple[tuple[str, ...], ...]:
    head = ("Linux 6.12, this kernel", *(f"file {memory:g} times memory" for memory in memories))
    return head, *(
        (
            pattern.removeprefix(TRACE),
            *(
                ", ".join(_spell(found[pattern, memory]) for found in means.values() if (pattern, memory) in found)
                for memory in memories
            ),
        )
        for pattern in patterns
    )


@styled
def _draw(means: dict[str, Means], patterns: Sequence[str], memories: Sequence[float], width: int) -> Figure:
    wide = width >= WIDE
    drawn = figure(width, _ROW * len(patterns) + _EDGES)
    rooms = drawn.subplots(1, 2, sharey=True)
    for axes, (variant, title) in zip(rooms, _SHOWN.items(), strict=True):
        _squares(axes, means[variant], patterns, memories, spelled=wide)
        axes.set_title(title)
    names = [pattern.removeprefix(TRACE) for pattern in patterns]
    rooms[0].set_yticks(range(len(patterns)), names, fontsize=11 if wide else 10)
    labels = [*(f"to {step:g}" for step in _STEPS), f"over {_STEPS[-1]:g}"]
    drawn.legend(
        handles=[Patch(color=colour(name), label=label) for name, label in zip(HEAT, labels, strict=True)],
        title="times the best window",
        loc="outside upper center",
        ncols=7 if wide else 4,
        frameon=False,
        fontsize=11 if wide else 10,
        handlelength=1.2,
        columnspacing=1,
        title_fontsize=11 if wide else 10,
    )
    return drawn


def _squares(axes: Axes, means: Means, patterns: Sequence[str], memories: Sequence[float], *, spelled: bool) -> None:
    """With their figures if there is room for them."""
    plain(axes)
    squares: dict[str, list[Rectangle]] = {}
    for row, pattern in enumerate(patterns):
        for column, memory in enumerate(memories):
            value = means.get((pattern, memory))
            if value is None:
                continue
            shade = bisect_right(_STEPS, value)
            square = Rectangle((column - 0.48, row - 0.47), 0.96, 0.94)
            squares.setdefault(HEAT[shade], []).append(square)
            if spelled:
                hot = colour("on_hot" if shade >= len(HEAT) - 2 else "on_heat")
                axes.text(column, row, _spell(value), ha="center", va="center", fontsize=10.5, color=hot)
    for name, some in squares.items():
        axes.add_collection(PatchCollection(some, facecolor=colour(name), edgecolor="none"))
    axes.set_xticks(range(len(memories)), [f"{memory:g}" for memory in memories])
    axes.set_xlim(-0.5, len(memories) - 0.5)
    axes.set_ylim(len(patterns) - 0.5, -0.5)
    axes.tick_params(length=0, labeltop=True)
    axes.set_xlabel("file, times memory")
    axes.xaxis.set_label_position("top")
    axes.spines[:].set_visible(False)


def _spell(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"

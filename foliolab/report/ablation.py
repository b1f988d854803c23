# SPDX-License-Identifier: GPL-2.0-only
"""What each mechanism of the adaptive window is worth, as a table."""

from collections.abc import Sequence

from rich.console import Console

from foliolab.regret.ablation import JUDGED, Ablation
from foliolab.regret.suite import FAMILIES, PATTERNS, TRACES
from foliolab.report.columns import Column
from foliolab.report.terminal import print_table, print_title


def print_ablations(console: Console, found: Sequence[Ablation]) -> None:
    """Print a row for each mechanism; the first one is the whole policy."""
    remark = (
        "Lines of code that it alone needs; regrets: geometric mean, worst; who pays most, in multiples of its cost."
    )
    print_title(console, "adaptive without one mechanism at a time", remark)
    print_table(console, make_columns(found), ["bold", *[""] * (len(found) - 1)])


def make_columns(found: Sequence[Ablation]) -> list[Column]:
    """One row for each; the first one is the whole policy."""
    return [
        Column(("", "without"), ("nothing", *(each.mechanism for each in found[1:])), 0, left=True),
        Column(("", "lines"), tuple(str(each.lines) for each in found), 0),
        _mean(PATTERNS, found, 0),
        _worst(PATTERNS, found, 1),
        _mean(JUDGED, found, 3),
        _mean(FAMILIES, found, 0),
        _worst(FAMILIES, found, 2),
        _mean(TRACES, found, 4),
        Column(("", "who pays"), tuple(_hurt(each) for each in found), 0, left=True),
    ]


def _mean(group: str, found: Sequence[Ablation], rank: int) -> Column:
    spreads = (each.spreads.get(group) for each in found)
    return Column((group, "mean"), tuple(f"{of.mean:.4f}" if of else "-" for of in spreads), rank)


def _worst(group: str, found: Sequence[Ablation], rank: int) -> Column:
    spreads = (each.spreads.get(group) for each in found)
    return Column(("", "worst"), tuple(f"{of.worst:.2f}" if of else "-" for of in spreads), rank)


def _hurt(found: Ablation) -> str:
    return ", ".join(f"{pattern} {times:.2f}" for pattern, times in found.hurt.items())

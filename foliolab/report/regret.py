# SPDX-License-Identifier: GPL-2.0-only
"""Regrets as tables for the terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from foliolab.regret.rows import FAMILIES, PATTERNS, TRACES, RegretRow
from foliolab.regret.suite import COMPARED
from foliolab.regret.summary import (
    GOOD_OFF,
    HIGH_REGRET,
    WORSE_THAN_OFF,
    Comparison,
    PatternSummary,
    Regrets,
    WaySummary,
    by_pattern,
    by_way,
    compare,
)
from foliolab.report.columns import Column
from foliolab.report.terminal import print_table

_COMPARED = dict(zip(COMPARED, (2, 3, 0), strict=True))
"""Variants that stand beside each other for every pattern; means of a high rank go first where room is short."""


def print_regret(console: Console, rows: Sequence[RegretRow], *, everything: bool) -> None:
    """Print the figures of each variant and pattern, and in which cells ``adaptive`` costs much: all, or how many.

    Each group of rows has tables of its own.
    """
    for group, what, where in (
        (PATTERNS, "pattern", ""),
        (FAMILIES, "pattern", " in new families"),
        (TRACES, "trace", " in traces"),
    ):
        found = [row for row in rows if row.group == group]
        if found:
            _print_rows(console, what, where, found, everything)


def _print_rows(console: Console, what: str, where: str, rows: Sequence[RegretRow], everything: bool) -> None:
    comparisons = compare(rows)
    _title(console, f"Regret by variant{where}, {len(comparisons)} cells")
    _remark(console, "Cost in multiples of the cheapest fixed window up to read_ahead_kb: worst, geometric mean.")
    _print_variants(console, by_way(rows))
    console.print()
    _title(console, f"Regret by {what}")
    _remark(
        console, "* is judged only. At its place adaptive is worst: file in multiples of memory, read_ahead_kb, device."
    )
    _print_patterns(console, what, by_pattern(rows, list(_COMPARED)))
    console.print()
    over = [found for found in comparisons if found.over]
    lost = [found for found in comparisons if found.lost]
    margin = f"{WORSE_THAN_OFF - 1:.0%}"
    for title, cells in (
        (f"adaptive over {HIGH_REGRET:g}{where}", over),
        (f"off up to {GOOD_OFF:g} and adaptive more than {margin} above it{where}", lost),
    ):
        _title(console, f"{title}: {len(cells)} cells", "bold red" if cells else "bold green")
        if cells and everything:
            _print_cells(console, what, cells)
        elif cells:
            console.print(Text("\n".join(_counted(cells))))
        console.print()


def _title(console: Console, text: str, style: str = "bold") -> None:
    console.print(Text(text, style=style))


def _remark(console: Console, text: str) -> None:
    console.print(Text(text, style="italic"))


def _place(row: RegretRow) -> str:
    """Where a pattern's cell is: the file in multiples of memory, read_ahead_kb, device."""
    return f"x{row.memory:g} {row.read_ahead_kb} {row.device}"


def _print_variants(console: Console, summaries: Sequence[WaySummary]) -> None:
    columns = [
        Column(("", "variant"), tuple(summary.variant for summary in summaries), 0, left=True),
        *_figures("all", [summary.everywhere for summary in summaries], 0),
        *_figures("judged", [summary.judged_only for summary in summaries], 0),
    ]
    print_table(console, columns, ["bold" if summary.variant == "adaptive" else "" for summary in summaries])


def _print_patterns(console: Console, what: str, summaries: Sequence[PatternSummary]) -> None:
    names = [f"{summary.pattern} *" if summary.judged_only else summary.pattern for summary in summaries]
    columns = [
        Column(("", what), tuple(names), 0, left=True),
        Column(("", "cells"), tuple(str(summary.cells) for summary in summaries), 5),
    ]
    for variant, rank in _COMPARED.items():
        columns += _figures(variant, [summary.spreads[variant] for summary in summaries], rank)
    columns += _places([summary.worst for summary in summaries])
    print_table(console, columns, ["red" if summary.worst.over else "" for summary in summaries])


def _print_cells(console: Console, what: str, found: Sequence[Comparison]) -> None:
    found = sorted(found, key=lambda comparison: -comparison.adaptive.regret)
    columns = [
        Column(("", what), tuple(comparison.adaptive.pattern for comparison in found), 0, left=True),
        Column(("", "off"), tuple(_regret(comparison.off.regret) for comparison in found), 0),
        Column(("", "adaptive"), tuple(_regret(comparison.adaptive.regret) for comparison in found), 0),
        *_places(found),
    ]
    print_table(console, columns, [""] * len(found))


def _counted(found: Sequence[Comparison]) -> Iterator[str]:
    """How many cells of each pattern, the most first."""
    for pattern, number in Counter(comparison.adaptive.pattern for comparison in found).most_common():
        yield f"{number:>5}  {pattern}"


def _figures(title: str, spreads: Sequence[Regrets | None], rank: int) -> list[Column]:
    """The worst regret, and the mean unless the table gets too wide."""
    return [
        Column((title, "worst"), tuple(_regret(spread.worst) if spread else "-" for spread in spreads), 0),
        Column(("", "mean"), tuple(f"{spread.mean:.3f}" if spread else "-" for spread in spreads), rank),
    ]


def _places(found: Sequence[Comparison]) -> list[Column]:
    windows = tuple(str(comparison.adaptive.oracle_window_kb) for comparison in found)
    return [
        Column(("best KiB", "there"), windows, 4),
        Column(("", "cell"), tuple(_place(comparison.adaptive) for comparison in found), 0, left=True),
    ]


def _regret(regret: float) -> str:
    return f"{regret:.2f}"

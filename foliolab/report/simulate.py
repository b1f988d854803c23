# SPDX-License-Identifier: GPL-2.0-only
"""Regrets, and what each mechanism of the adaptive window is worth, as tables."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from foliolab.grouped import grouped
from foliolab.report.columns import Column
from foliolab.report.section import Section
from foliolab.report.terminal import print_section, print_table, print_title
from foliolab.simulate.ablation import JUDGED, Ablation
from foliolab.simulate.rows import GOOD_OFF, HIGH_REGRET, WORSE_THAN_OFF, RegretRow
from foliolab.simulate.suite import COMPARED, FAMILIES, PATTERNS, REPORTS, TRACES
from foliolab.simulate.summary import PRICE, TIME, Regrets, by_way, ours

_COMPARED = dict(zip(COMPARED, ((2, 3), (5, 6), (0, 1)), strict=True))
"""Variants that stand beside each other for every pattern; means of price and of time with a high rank go first where
room is short."""


def print_regret(console: Console, rows: Sequence[RegretRow]) -> None:
    """Print the figures of each variant and pattern, and in how many cells of which ``adaptive`` costs much.

    Each group of rows has tables of its own.
    """
    for group, what, where in (
        (PATTERNS, "pattern", ""),
        (FAMILIES, "pattern", " in new families"),
        (TRACES, "trace", " in traces"),
        (REPORTS, "report", " in reports"),
    ):
        if found := [row for row in rows if row.group == group]:
            for section in _sections(what, where, found):
                print_section(console, section)
            _print_counts(console, where, ours(found))


def _sections(what: str, where: str, rows: Sequence[RegretRow]) -> Iterator[Section]:
    remark = (
        "Price in multiples of the cheapest fixed window up to read_ahead_kb: worst, geometric mean. "
        "Time in multiples of the fastest: mean."
    )
    styles = ["bold" if variant == "adaptive" else "" for variant in by_way(rows)]
    yield Section(f"Regret by variant{where}, {len(ours(rows))} cells", _variants(rows), remark, styles)
    for title, columns in device_tables(rows):
        yield Section(f"Regret by device{where}, {title}", columns, "Geometric means of time and of price.")
    patterns = list(grouped(rows, lambda row: row.pattern).values())
    patterns.sort(key=lambda members: -_worst(members).regret)
    remark = "* is judged only. In its cell adaptive is worst: file in multiples of memory, read_ahead_kb, device."
    styles = ["red" if _worst(members).over else "" for members in patterns]
    yield Section(f"Regret by {what}", _patterns(what, patterns), remark, styles)


def _print_counts(console: Console, where: str, adaptive: Sequence[RegretRow]) -> None:
    margin = f"{WORSE_THAN_OFF - 1:.0%}"
    for title, cells in (
        (f"adaptive over {HIGH_REGRET:g}", [row for row in adaptive if row.over]),
        (f"off up to {GOOD_OFF:g} and adaptive more than {margin} above it", [row for row in adaptive if row.lost]),
    ):
        print_title(console, f"{title}{where}: {len(cells)} cells", style="bold red" if cells else "bold green")
        for pattern, number in Counter(row.pattern for row in cells).most_common():
            console.print(Text(f"{number:>5}  {pattern}"))
        console.print()


def _variants(rows: Sequence[RegretRow]) -> list[Column]:
    variants = list(by_way(rows))
    columns = [Column(("", "variant"), tuple(variants), 0, left=True)]
    for title, judged_only in (("all", False), ("judged", True)):
        prices, times = (by_way(rows, multiple, judged_only=judged_only) for multiple in (PRICE, TIME))
        columns += _figures(title, [prices.get(variant) for variant in variants], 0)
        columns.append(_mean(("", "time"), [times.get(variant) for variant in variants], 1))
    return columns


def device_tables(
    rows: Sequence[RegretRow], variants: Collection[str] | None = None
) -> Iterator[tuple[str, list[Column]]]:
    """A title and columns for all of one group, and then for what is judged only, if anything is.

    A row for each variant, or for each of ``variants``; for each device the means of time and of price.
    """
    for title, judged_only in (("all", False), ("judged", True)):
        found = [row for row in rows if row.judged_only or not judged_only]
        names = [variant for variant in by_way(found) if variants is None or variant in variants]
        columns = [Column(("", "variant"), tuple(names), 0, left=True)]
        for device, members in grouped(found, lambda row: row.device).items():
            prices, times = (by_way(members, multiple) for multiple in (PRICE, TIME))
            columns.append(_mean((device, "time"), [times[variant] for variant in names], 0))
            columns.append(_mean(("", "price"), [prices[variant] for variant in names], 1))
        if found:
            yield title, columns


def _patterns(what: str, patterns: Sequence[Sequence[RegretRow]]) -> list[Column]:
    """A row for each pattern, and in which of its cells ``adaptive`` is worst."""
    worst = list(map(_worst, patterns))
    prices, times = ([by_way(members, multiple) for members in patterns] for multiple in (PRICE, TIME))
    names = tuple(f"{row.pattern} *" if row.judged_only else row.pattern for row in worst)
    columns = [
        Column(("", what), names, 0, left=True),
        Column(("", "cells"), tuple(str(len(ours(members))) for members in patterns), 5),
    ]
    for variant, (rank, rank_of_time) in _COMPARED.items():
        columns += _figures(variant, [each[variant] for each in prices], rank)
        columns.append(_mean(("", "time"), [each[variant] for each in times], rank_of_time))
    places = tuple(f"x{row.memory:g} {row.read_ahead_kb} {row.device}" for row in worst)
    return [
        *columns,
        Column(("best KiB", "there"), tuple(str(row.oracle_window_kb) for row in worst), 4),
        Column(("", "cell"), places, 0, left=True),
    ]


def _worst(rows: Sequence[RegretRow]) -> RegretRow:
    return max(ours(rows), key=lambda row: row.regret)


def _figures(title: str, spreads: Sequence[Regrets | None], rank: int) -> list[Column]:
    """The worst regret, and the mean unless the table gets too wide."""
    return [
        Column((title, "worst"), tuple(f"{spread.worst:.2f}" if spread else "-" for spread in spreads), 0),
        _mean(("", "mean"), spreads, rank),
    ]


def _mean(title: tuple[str, str], spreads: Sequence[Regrets | None], rank: int) -> Column:
    return Column(title, tuple(f"{spread.mean:.3f}" if spread else "-" for spread in spreads), rank)


def print_ablations(console: Console, found: Sequence[Ablation]) -> None:
    remark = (
        "Lines of code that it alone needs; time in multiples of that with the fastest fixed window: geometric means; "
        "who pays most, and which store or report on which disk, in multiples of the time with it."
    )
    print_title(console, "adaptive without one mechanism at a time", remark)
    print_table(console, ablation_columns(found), ["bold", *[""] * (len(found) - 1)])


def ablation_columns(found: Sequence[Ablation]) -> list[Column]:
    """One row for each; the first one is the whole policy."""
    return [
        Column(("", "without"), ("nothing", *(each.mechanism for each in found[1:])), 0, left=True),
        Column(("", "lines"), tuple(str(each.lines) for each in found), 0),
        *(
            _mean(("", group), [each.spreads.get(group) for each in found], rank)
            for group, rank in ((PATTERNS, 0), (JUDGED, 3), (FAMILIES, 2), (TRACES, 0), (REPORTS, 0))
        ),
        Column(("", "who pays"), tuple(_hurt(each.hurt) for each in found), 4, left=True),
        Column(("", "which store or report"), tuple(_hurt(each.needs) for each in found), 0, left=True),
    ]


def does_column(found: Sequence[Ablation]) -> Column:
    """What each mechanism does, for the same rows."""
    return Column(("", "what it does"), ("", *(each.does for each in found[1:])), 0, left=True)


def _hurt(who: Mapping[str, float]) -> str:
    return "; ".join(f"{name} {times:.2f}" for name, times in who.items())

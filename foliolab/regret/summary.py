# SPDX-License-Identifier: GPL-2.0-only
"""The figures that many rows come to, and the bounds for them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from msgspec import structs

from foliolab.errors import ChecksFailed
from foliolab.grouped import grouped
from foliolab.regret.rows import RegretRow
from foliolab.regret.suite import Bounds, Suite

HIGH_REGRET = 1.5
GOOD_OFF = 1.1
"""Up to this regret of ``off`` there is nothing to mend..."""
WORSE_THAN_OFF = 1.05
"""... and a cell is lost where ``adaptive`` costs more than so many times as much."""


@dataclass(frozen=True)
class Regrets:
    """The regret of one variant in several cells."""

    worst: float
    mean: float
    """The geometric one."""


@dataclass(frozen=True)
class WaySummary:
    variant: str
    everywhere: Regrets
    judged_only: Regrets | None
    """None where no such pattern was asked for."""


@dataclass(frozen=True)
class Comparison:
    """One cell, with the rows of ``off`` and ``adaptive`` there."""

    off: RegretRow
    adaptive: RegretRow

    @property
    def over(self) -> bool:
        """Whether ``adaptive`` costs much more than the oracle."""
        return self.adaptive.regret > HIGH_REGRET

    @property
    def lost(self) -> bool:
        """Whether ``off`` reads well here, and ``adaptive`` does not."""
        return self.off.regret <= GOOD_OFF and self.adaptive.cost > WORSE_THAN_OFF * self.off.cost


@dataclass(frozen=True)
class PatternSummary:
    pattern: str
    judged_only: bool
    cells: int
    spreads: dict[str, Regrets]
    """By variant."""
    worst: Comparison
    """The cell where ``adaptive`` has the highest regret."""


def spread(rows: Iterable[RegretRow]) -> Regrets:
    """Of at least one row."""
    regrets = [row.regret for row in rows]
    return Regrets(max(regrets), geometric_mean(regrets))


def by_way(rows: Sequence[RegretRow]) -> list[WaySummary]:
    summaries = []
    for variant, found in grouped(rows, lambda row: row.variant).items():
        judged = [row for row in found if row.judged_only]
        summaries.append(WaySummary(variant, spread(found), spread(judged) if judged else None))
    return summaries


def compare(rows: Sequence[RegretRow]) -> list[Comparison]:
    """``off`` and ``adaptive`` in every cell."""
    off = {row.cell: row for row in rows if row.variant == "off"}
    return [Comparison(off[row.cell], row) for row in rows if row.variant == "adaptive"]


def by_pattern(rows: Sequence[RegretRow], variants: Sequence[str]) -> list[PatternSummary]:
    """One for each pattern, those where ``adaptive`` is worst first."""
    summaries = []
    for pattern, members in grouped(rows, lambda row: row.pattern).items():
        comparisons = compare(members)
        summaries.append(
            PatternSummary(
                pattern=pattern,
                judged_only=members[0].judged_only,
                cells=len(comparisons),
                spreads={variant: spread(row for row in members if row.variant == variant) for variant in variants},
                worst=max(comparisons, key=lambda comparison: comparison.adaptive.regret),
            )
        )
    return sorted(summaries, key=lambda summary: -summary.worst.adaptive.regret)


def summary_to_json(rows: Sequence[RegretRow]) -> list[dict[str, Any]]:
    """One for each group and variant; that of ``adaptive`` counts the cells where it costs much, and where it loses."""
    found = []
    for group, members in grouped(rows, lambda row: row.group).items():
        comparisons = compare(members)
        counts = {
            "cells": len(comparisons),
            "over": sum(each.over for each in comparisons),
            "lost": sum(each.lost for each in comparisons),
        }
        for each in by_way(members):
            spread_of = {"mean": each.everywhere.mean, "worst": each.everywhere.worst}
            judged = {"judged_mean": each.judged_only and each.judged_only.mean}
            more = counts if each.variant == "adaptive" else {}
            found.append({"group": group, "variant": each.variant, **spread_of, **judged, **more})
    return found


def check(suite: Suite, rows: Sequence[RegretRow]) -> None:
    """Raise ChecksFailed with every bound that ``adaptive`` misses in these rows, and every rival that is no worse."""
    missed = [
        f"{group}: {what}"
        for group, bounds in structs.asdict(suite.bounds).items()
        if (found := [row for row in rows if row.group == group])
        for what in _missed(by_way(found), bounds, suite.rivals)
    ]
    if missed:
        raise ChecksFailed(
            f"adaptive misses {len(missed)} bound{'s' if len(missed) != 1 else ''}: {'; '.join(missed)}."
        )


def _missed(summaries: Sequence[WaySummary], bounds: Bounds, rivals: Iterable[str]) -> Iterator[str]:
    of = {summary.variant: summary for summary in summaries}
    adaptive = of["adaptive"].everywhere
    judged = of["adaptive"].judged_only
    if adaptive.mean > bounds.mean:
        yield f"the geometric mean is {adaptive.mean:.4f}, at most {bounds.mean:.3f} is allowed"
    if judged and judged.mean > bounds.judged:
        yield f"that of what is judged only is {judged.mean:.4f}, at most {bounds.judged:.3f} is allowed"
    if adaptive.worst > bounds.worst:
        yield f"the worst regret is {adaptive.worst:.3f}, at most {bounds.worst:g} is allowed"
    for rival in rivals:
        other = of[rival].everywhere
        if other.mean <= adaptive.mean or other.worst <= adaptive.worst:
            here = f"adaptive {adaptive.mean:.4f} and {adaptive.worst:.3f}"
            yield f"{rival} has {other.mean:.4f} and {other.worst:.3f}, {here}"

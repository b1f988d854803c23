# SPDX-License-Identifier: GPL-2.0-only
"""The figures that many rows come to, and the bounds for them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from foliolab.errors import ChecksFailed
from foliolab.grouped import grouped
from foliolab.regret.rows import FAMILIES, PATTERNS, TRACES, Cell, Row

HIGH_REGRET = 1.5
GOOD_STOCK = 1.1
"""Up to this regret there is nothing to mend about stock..."""
WORSE_THAN_STOCK = 1.05
"""... and a cell is lost where folio costs more than so many times as much."""
RIVALS = ("xnu", "freebsd", "zfetch", "competitive", "linux-7.3")
"""Variants that folio has to be better than."""


@dataclass(frozen=True)
class Bounds:
    """What folio's regrets in a group of rows may come to."""

    mean: float
    """The geometric one."""
    judged: float
    """The same of rows that are judged only."""
    worst: float


BOUNDS = {
    PATTERNS: Bounds(mean=1.025, judged=1.024, worst=3.64),
    FAMILIES: Bounds(mean=1.091, judged=1.105, worst=2.19),
    TRACES: Bounds(mean=1.088, judged=1.096, worst=2.04),
}


@dataclass(frozen=True)
class Spread:
    """The regret of one variant in several cells."""

    worst: float
    mean: float
    """The geometric one."""


@dataclass(frozen=True)
class VariantSummary:
    variant: str
    everywhere: Spread
    judged_only: Spread | None
    """None where no such pattern was asked for."""


@dataclass(frozen=True)
class Comparison:
    """One cell, with the rows of stock and folio there."""

    stock: Row
    folio: Row

    @property
    def cell(self) -> Cell:
        return self.folio.cell

    @property
    def over(self) -> bool:
        """Whether folio costs much more than the oracle."""
        return self.folio.regret > HIGH_REGRET

    @property
    def lost(self) -> bool:
        """Whether stock reads well here, and folio does not."""
        return self.stock.regret <= GOOD_STOCK and self.folio.cost > WORSE_THAN_STOCK * self.stock.cost


@dataclass(frozen=True)
class PatternSummary:
    pattern: str
    judged_only: bool
    cells: int
    spreads: dict[str, Spread]
    """By variant."""
    worst: Comparison
    """The cell where folio has the highest regret."""


def spread(rows: Iterable[Row]) -> Spread:
    """Of at least one row."""
    regrets = [row.regret for row in rows]
    return Spread(max(regrets), geometric_mean(regrets))


def by_variant(rows: Sequence[Row]) -> list[VariantSummary]:
    summaries = []
    for variant, found in grouped(rows, lambda row: row.variant).items():
        judged = [row for row in found if row.judged_only]
        summaries.append(VariantSummary(variant, spread(found), spread(judged) if judged else None))
    return summaries


def compare(rows: Sequence[Row]) -> list[Comparison]:
    """Stock and folio in every cell."""
    stock = {row.cell: row for row in rows if row.variant == "stock"}
    return [Comparison(stock[row.cell], row) for row in rows if row.variant == "folio"]


def by_pattern(rows: Sequence[Row], variants: Sequence[str]) -> list[PatternSummary]:
    """One for each pattern, those where folio is worst first."""
    summaries = []
    for pattern, members in grouped(rows, lambda row: row.cell.pattern).items():
        comparisons = compare(members)
        summaries.append(
            PatternSummary(
                pattern=pattern,
                judged_only=members[0].judged_only,
                cells=len(comparisons),
                spreads={variant: spread(row for row in members if row.variant == variant) for variant in variants},
                worst=max(comparisons, key=lambda comparison: comparison.folio.regret),
            )
        )
    return sorted(summaries, key=lambda summary: -summary.worst.folio.regret)


def check(rows: Sequence[Row]) -> None:
    """Raise ChecksFailed with every bound that folio misses in these rows, and every rival that is no worse."""
    missed = [
        f"{group}: {what}"
        for group, bounds in BOUNDS.items()
        if (found := [row for row in rows if row.group == group])
        for what in _missed(by_variant(found), bounds)
    ]
    if missed:
        raise ChecksFailed(f"folio misses {len(missed)} bound{'s' if len(missed) != 1 else ''}: {'; '.join(missed)}.")


def _missed(summaries: Sequence[VariantSummary], bounds: Bounds) -> Iterator[str]:
    of = {summary.variant: summary for summary in summaries}
    folio = of["folio"].everywhere
    judged = of["folio"].judged_only
    if folio.mean > bounds.mean:
        yield f"the geometric mean is {folio.mean:.4f}, at most {bounds.mean:.3f} is allowed"
    if judged and judged.mean > bounds.judged:
        yield f"that of what is judged only is {judged.mean:.4f}, at most {bounds.judged:.3f} is allowed"
    if folio.worst > bounds.worst:
        yield f"the worst regret is {folio.worst:.3f}, at most {bounds.worst:g} is allowed"
    for rival in RIVALS:
        other = of[rival].everywhere
        if other.mean <= folio.mean or other.worst <= folio.worst:
            yield f"{rival} has {other.mean:.4f} and {other.worst:.3f}, folio {folio.mean:.4f} and {folio.worst:.3f}"

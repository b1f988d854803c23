# SPDX-License-Identifier: GPL-2.0-only
"""The figures that many rows come to, and the bounds for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from foliolab.errors import ChecksFailed
from foliolab.regret.rows import Cell, Row

WORST_REGRET = 1.5
MEAN_REGRET = 1.05
GOOD_STOCK = 1.1
"""Up to this regret there is nothing to mend about stock..."""
WORSE_THAN_STOCK = 1.05
"""... and a cell is lost where folio costs more than so many times as much."""


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
        """Whether folio exceeds the worst regret that it may have."""
        return self.folio.regret > WORST_REGRET

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
    for variant in dict.fromkeys(row.variant for row in rows):
        found = [row for row in rows if row.variant == variant]
        judged = [row for row in found if row.judged_only]
        summaries.append(VariantSummary(variant, spread(found), spread(judged) if judged else None))
    return summaries


def compare(rows: Sequence[Row]) -> list[Comparison]:
    """Stock and folio in every cell."""
    stock = {row.cell: row for row in rows if row.variant == "stock"}
    return [Comparison(stock[row.cell], row) for row in rows if row.variant == "folio"]


def by_pattern(rows: Sequence[Row], variants: Sequence[str]) -> list[PatternSummary]:
    """One for each pattern, those where folio is worst first."""
    of_pattern: dict[str, list[Row]] = {}
    for row in rows:
        of_pattern.setdefault(row.cell.pattern, []).append(row)
    summaries = []
    for pattern, members in of_pattern.items():
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
    """Raise ChecksFailed with every bound that folio misses in these rows."""
    comparisons = compare(rows)
    found = spread(comparison.folio for comparison in comparisons)
    lost = sum(comparison.lost for comparison in comparisons)
    missed = []
    if found.worst > WORST_REGRET:
        over = sum(comparison.over for comparison in comparisons)
        missed.append(
            f"the worst regret is {found.worst:.3f}, at most {WORST_REGRET:g} is allowed ({_cells(over)} over)"
        )
    if found.mean > MEAN_REGRET:
        missed.append(f"the geometric mean is {found.mean:.4f}, at most {MEAN_REGRET:g} is allowed")
    if lost:
        share = f"{WORSE_THAN_STOCK - 1:.0%}"
        missed.append(f"in {_cells(lost)} folio costs over {share} more than a stock that reads well")
    if missed:
        raise ChecksFailed(f"folio misses {len(missed)} of 3 bounds: {'; '.join(missed)}.")


def _cells(number: int) -> str:
    return f"{number} cell{'s' if number != 1 else ''}"

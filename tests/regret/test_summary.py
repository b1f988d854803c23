# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.errors import ChecksFailed
from foliolab.regret.summary import by_pattern, by_variant, check, compare, spread
from tests.regret.small import cells, row


def test_spread_is_the_worst_and_the_geometric_mean() -> None:
    found = spread([row("folio", 1), row("folio", 4), row("folio", 2)])
    assert found.worst == 4
    assert found.mean == pytest.approx(2)


def test_variants_everywhere_and_judged_only() -> None:
    rows = [
        row("stock", 2),
        row("folio", 1),
        row("stock", 8, "b", judged_only=True),
        row("folio", 3, "b", judged_only=True),
    ]
    stock, folio = by_variant(rows)
    assert (stock.variant, folio.variant) == ("stock", "folio")
    assert stock.everywhere.worst == 8
    assert stock.everywhere.mean == pytest.approx(4)
    assert stock.judged_only == spread(rows[2:3])
    assert by_variant([row("stock", 2)])[0].judged_only is None


def test_patterns_are_sorted_by_where_folio_is_worst() -> None:
    rows = [
        row("stock", 1, "calm"), row("folio", 1, "calm"),
        row("stock", 9, "wild"), row("folio", 1.2, "wild"),
        row("stock", 1, "wild", device="slow"), row("folio", 1.4, "wild", device="slow"),
    ]  # fmt: skip
    wild, calm = by_pattern(rows, ["stock", "folio"])
    assert (wild.pattern, wild.cells, wild.judged_only) == ("wild", 2, False)
    assert wild.spreads["stock"].mean == pytest.approx(3)
    assert wild.spreads["folio"].worst == 1.4
    assert wild.worst.cell.device == "slow"
    assert (calm.pattern, calm.cells) == ("calm", 1)


@pytest.mark.parametrize(
    ("stock", "folio", "over", "lost"),
    [
        (1, 1, False, False),
        (1, 1.04, False, False),
        (1, 1.06, False, True),
        (1.09, 1.6, True, True),
        (1.11, 1.49, False, False),
        (3, 1.51, True, False),
        (1, 0.5, False, False),
    ],
)
def test_where_folio_is_over_the_bound_or_loses(stock: float, folio: float, over: bool, lost: bool) -> None:
    (found,) = compare(cells((stock, folio)))
    assert (found.over, found.lost) == (over, lost)


def test_bounds_that_hold() -> None:
    check(cells((1, 1.04), (1.2, 1.49), (5, 0.7)))


@pytest.mark.parametrize(
    ("regrets", "words"),
    [
        (
            [(3, 1.6), (3, 0.6), (3, 0.6)],
            "1 of 3 bounds: the worst regret is 1.600, at most 1.5 is allowed (1 cell over).",
        ),
        ([(3, 1.06)], "1 of 3 bounds: the geometric mean is 1.0600, at most 1.05 is allowed."),
        ([(1, 1.06), (1, 0.9)], "1 of 3 bounds: in 1 cell folio costs over 5% more than a stock that reads well."),
        ([(1, 2), (1, 2)], "3 of 3 bounds: the worst regret is 2.000, at most 1.5 is allowed (2 cells over); the geom"),
    ],
)
def test_bounds_that_are_missed_are_named(regrets: list[tuple[float, float]], words: str) -> None:
    with pytest.raises(ChecksFailed) as error:
        check(cells(*regrets))
    assert f"folio misses {words}" in str(error.value)

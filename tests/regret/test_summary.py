# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.errors import ChecksFailed
from foliolab.regret.rows import FAMILIES, PATTERNS, TRACES, RegretRow
from foliolab.regret.summary import by_pattern, by_way, check, compare, spread
from tests.regret.small import SMALL, cells, row


def test_spread_is_the_worst_and_the_geometric_mean() -> None:
    found = spread([row("adaptive", 1), row("adaptive", 4), row("adaptive", 2)])
    assert found.worst == 4
    assert found.mean == pytest.approx(2)


def test_variants_everywhere_and_judged_only() -> None:
    rows = [
        row("off", 2),
        row("adaptive", 1),
        row("off", 8, "b", judged_only=True),
        row("adaptive", 3, "b", judged_only=True),
    ]
    off, adaptive = by_way(rows)
    assert (off.variant, adaptive.variant) == ("off", "adaptive")
    assert off.everywhere.worst == 8
    assert off.everywhere.mean == pytest.approx(4)
    assert off.judged_only == spread(rows[2:3])
    assert by_way([row("off", 2)])[0].judged_only is None


def test_patterns_are_sorted_by_where_adaptive_is_worst() -> None:
    rows = [
        row("off", 1, "calm"), row("adaptive", 1, "calm"),
        row("off", 9, "wild"), row("adaptive", 1.2, "wild"),
        row("off", 1, "wild", device="slow"), row("adaptive", 1.4, "wild", device="slow"),
    ]  # fmt: skip
    wild, calm = by_pattern(rows, ["off", "adaptive"])
    assert (wild.pattern, wild.cells, wild.judged_only) == ("wild", 2, False)
    assert wild.spreads["off"].mean == pytest.approx(3)
    assert wild.spreads["adaptive"].worst == 1.4
    assert wild.worst.adaptive.device == "slow"
    assert (calm.pattern, calm.cells) == ("calm", 1)


@pytest.mark.parametrize(
    ("off", "adaptive", "over", "lost"),
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
def test_where_adaptive_is_over_the_bound_or_loses(off: float, adaptive: float, over: bool, lost: bool) -> None:
    (found,) = compare(cells((off, adaptive)))
    assert (found.over, found.lost) == (over, lost)


def group(adaptive: float, rivals: float = 9, family: str = "", *, judged_only: bool = False) -> list[RegretRow]:
    regrets = {"off": 2.0, "adaptive": adaptive} | dict.fromkeys(SMALL.rivals, rivals)
    return [row(variant, regret, family=family, judged_only=judged_only) for variant, regret in regrets.items()]


def test_bounds_that_hold() -> None:
    check(SMALL, [*group(1.01), *group(1.02, judged_only=True), *group(1.05, family="walks")])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (group(1.04), "1 bound: patterns: the geometric mean is 1.0400, at most 1.025 is allowed."),
        (
            [*group(0.5), *group(1.04, judged_only=True)],
            "1 bound: patterns: that of what is judged only is 1.0400, at most 1.024 is allowed.",
        ),
        (
            [*group(0.1), *group(3.7)],
            "1 bound: patterns: the worst regret is 3.700, at most 3.64 is allowed.",
        ),
        (
            [*group(0.1), *group(2.4, family="walks")],
            "2 bounds: families: the geometric mean is 2.4000, at most 1.091 is allowed; families: the worst regret is",
        ),
        (group(1.01, rivals=1.01), "5 bounds: patterns: xnu has 1.0100 and 1.010, adaptive 1.0100 and 1.010; "),
    ],
)
def test_bounds_that_are_missed_are_named(rows: list[RegretRow], words: str) -> None:
    with pytest.raises(ChecksFailed) as error:
        check(SMALL, rows)
    assert f"adaptive misses {words}" in str(error.value)


def test_every_group_has_bounds() -> None:
    assert {*SMALL.bounds.__struct_fields__} == {PATTERNS, FAMILIES, TRACES}

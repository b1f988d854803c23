# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.errors import ChecksFailed
from foliolab.regret.rows import FAMILIES, PATTERNS, TRACES, RegretRow
from foliolab.regret.summary import by_way, check, spread
from tests.regret.small import SMALL, row


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
    found = by_way(rows)
    assert list(found) == ["off", "adaptive"]
    assert found["off"].worst == 8
    assert found["off"].mean == pytest.approx(4)
    assert by_way(rows, judged_only=True)["off"] == spread(rows[2:3])
    assert by_way(rows[:2], judged_only=True) == {}


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
    found = row("adaptive", adaptive, off=off)
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

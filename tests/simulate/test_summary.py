# SPDX-License-Identifier: GPL-2.0-only
from collections import Counter
from itertools import product

import pytest

from foliolab.analyse.expected import Status
from foliolab.simulate.rows import RegretRow
from foliolab.simulate.suite import FIGURES, GROUPS
from foliolab.simulate.summary import by_way, verdicts
from tests.simulate.small import RIVALS, SMALL, row


def test_spread_is_the_worst_and_the_geometric_mean() -> None:
    found = by_way([row("adaptive", 1), row("adaptive", 4), row("adaptive", 2)])["adaptive"]
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
    assert by_way(rows, judged_only=True)["off"] == by_way(rows[2:3])["off"]
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


def group(
    adaptive: float, rivals: float = 90, family: str = "", *, time: float | None = None, judged_only: bool = False
) -> list[RegretRow]:
    """``time`` is that of adaptive, if it is another regret than by price."""
    others = {"off": 2.0} | dict.fromkeys(RIVALS, rivals)
    return [
        row("adaptive", adaptive, family=family, judged_only=judged_only, time=time),
        *(row(variant, regret, family=family, judged_only=judged_only) for variant, regret in others.items()),
    ]


def failing(rows: list[RegretRow]) -> list[tuple[str, str, str]]:
    return [
        (each.cell.label, each.variant, each.metric) for each in verdicts(SMALL, rows) if each.status is Status.FAILS
    ]


def test_what_is_expected() -> None:
    rows = [*group(0.9), *group(0.9, judged_only=True), *group(1.05, family="walks")]
    statuses = Counter(each.status for each in verdicts(SMALL, rows))
    # Of patterns all figures, of families none that is judged only, of traces and reports nothing was measured.
    assert statuses == {Status.HOLDS: 6 + 4 + 2 * 4 * len(RIVALS), Status.NOT_MEASURED: 2 + 2 * (6 + 4 * len(RIVALS))}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (group(1.04), [("patterns", "adaptive", "mean"), ("patterns", "adaptive", "time_mean")]),
        (group(0.9, time=1.04), [("patterns", "adaptive", "time_mean")]),
        ([*group(0.5), *group(0.9, time=1.04, judged_only=True)], [("patterns", "adaptive", "time_judged_mean")]),
        ([*group(0.1), *group(6.9, time=0.9)], [("patterns", "adaptive", "worst")]),
        (
            [*group(0.01), *group(60, family="walks")],
            [("families", "adaptive", name) for name in ("mean", "worst", "time_mean", "time_worst")],
        ),
        (
            group(0.9, rivals=0.9),
            [("patterns", rival, name) for rival in RIVALS for name in ("mean", "worst", "time_mean", "time_worst")],
        ),
    ],
)
def test_what_is_not_as_expected(rows: list[RegretRow], expected: list[tuple[str, str, str]]) -> None:
    assert failing(rows) == expected


def test_every_figure_of_every_group_has_a_bound() -> None:
    bounds = {(each.cell["group"], name) for each in SMALL.expect if each.at_most for name in each.metrics}
    assert bounds == set(product(GROUPS, FIGURES))

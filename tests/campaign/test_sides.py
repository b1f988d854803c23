# SPDX-License-Identifier: GPL-2.0-only
from random import Random

import pytest

from foliolab.campaign.search import LEAD, Ends


def ends(good: list[float], bad: list[float], negligible: float = 0) -> Ends:
    return Ends(tuple(good), tuple(bad), negligible)


@pytest.mark.parametrize(
    ("values", "lead"), [([11, 12, 13], -3), ([19, 18, 17], 3), ([11, 19], 0), ([15], 0), ([14], -1), ([99], 1)]
)
def test_a_boot_votes_for_the_kernel_that_is_nearer(values: list[float], lead: int) -> None:
    assert ends([10] * 5, [20] * 5).lead_of_bad(values) == lead
    assert ends([20] * 5, [10] * 5).lead_of_bad([30 - value for value in values]) == lead


def test_repetitions_of_one_seed_are_compared_with_each_other() -> None:
    """What one seed makes of the good kernel may be what another makes of the bad one."""
    both = ends([10, 100, 1000], [20, 200, 2000])
    assert both.lead_of_bad([19, 190, 1900]) == 3
    assert both.lead_of_bad([11, 110, 1100]) == -3


def test_who_has_won_is_not_asked_again() -> None:
    both = ends([10] * 10, [20] * 10)
    assert both.lead_of_bad([20] * LEAD + [10] * 6) == LEAD
    assert both.lead_of_bad([10, 20] * 5) == 0


@pytest.mark.parametrize(
    ("good", "bad", "negligible", "clear"),
    [
        ([10, 10, 10], [20, 20, 20], 0, True),
        ([20, 20, 20], [10, 10, 10], 0, True),
        ([10, 10, 10], [20, 20, 20], 10, False),
        ([10, 12, 11], [21, 21, 21], 0, True),
        ([10, 12, 11], [20, 21, 21], 0, False),
        ([10, 20, 15], [12, 22, 17], 0, False),
        ([10, 10, 10], [10, 10, 10], 0, False),
    ],
)
def test_one_boot_will_do_where_chance_moves_little(
    good: list[float], bad: list[float], negligible: float, clear: bool
) -> None:
    assert ends(good, bad, negligible).clear is clear
    assert ends(bad, good, negligible).clear is clear


@pytest.mark.parametrize(("value", "side"), [(9, -1), (12, -1), (15, 0), (18, 1), (22, 1), (23, 0), (7, 0), (99, 0)])
def test_a_figure_like_neither_is_not_plain(value: float, side: int) -> None:
    assert ends([10, 10, 10], [20, 20, 20]).plainly(value) == side
    assert ends([20, 20, 20], [10, 10, 10]).plainly(value) == -side


@pytest.mark.parametrize(
    ("more", "less", "differ"), [(3, 0, False), (6, 0, False), (7, 0, True), (9, 1, True), (8, 2, False), (0, 7, True)]
)
def test_kernels_differ_if_chance_seldom_does_that(more: int, less: int, differ: bool) -> None:
    bad = [11.0] * more + [9.0] * less
    assert ends([10] * len(bad), bad).differ is differ
    assert not ends([10] * len(bad), bad, negligible=1).differ


def test_boots_of_one_kernel_are_seldom_told_apart() -> None:
    random = Random(1)
    alarms = 0
    for _ in range(2000):
        good, bad = ([random.gauss(0, 1) for _ in range(10)] for _ in range(2))
        alarms += ends(good[:3], bad[:3]).clear or ends(good, bad).differ
    assert 0 < alarms < 80  # 2 % by the sign test, and less than 1 % by three that are clear

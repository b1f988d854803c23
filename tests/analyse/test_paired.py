# SPDX-License-Identifier: GPL-2.0-only
from itertools import product
from random import Random

import pytest
from scipy.stats import rankdata, wilcoxon

from foliolab.analyse.paired import CHANCE, boots_needed, corrected, p_value, shift


@pytest.mark.parametrize(("pairs", "least"), [(1, 1), (3, 1 / 4), (5, 1 / 16), (6, 1 / 32), (13, 2**-12)])
def test_so_much_do_so_few_boots_say(pairs: int, least: float) -> None:
    agreeing = shift([float(each) for each in range(1, pairs + 1)])
    assert agreeing.p == pytest.approx(least)
    assert (agreeing.interval is None) is (least > CHANCE)


def test_nothing_differs() -> None:
    assert shift([0.0] * 6).interval == (0, 0)
    assert shift([0.0] * 6).p == 1


@pytest.mark.parametrize("pairs", range(6, 16))
def test_the_interval_has_what_the_test_does_not_reject(pairs: int) -> None:
    random = Random(pairs)
    differences = [random.gauss(1, 2) for _ in range(pairs)]
    found = shift(differences)
    assert found.interval
    width = found.interval[1] - found.interval[0]
    assert found.interval[0] < found.estimate < found.interval[1]
    for end, outwards in zip(found.interval, (-1e-9, 1e-9), strict=True):
        assert p_value([each - end - outwards * width for each in differences]) <= CHANCE
        assert p_value([each - end + outwards * width for each in differences]) > CHANCE


@pytest.mark.parametrize("pairs", range(1, 31))
def test_without_ties_it_is_the_test_of_scipy(pairs: int) -> None:
    random = Random(pairs)
    differences = [random.gauss(0.3, 1) for _ in range(pairs)]
    assert p_value(differences) == pytest.approx(wilcoxon(differences, method="exact").pvalue)


@pytest.mark.parametrize("differences", [[1, 1, 2, 3, 3, 4], [-1, 1, 2, 3, 3, 4], [-1, -1, 2, 3, -3, 4], [2, 2, 2, -2]])
def test_ties_and_zeros_are_counted_exactly(differences: list[float]) -> None:
    """Against all ways in which signs can fall; equal differences share their ranks, and those of 0 have none."""
    ranks = rankdata([abs(each) for each in differences])
    sums = [abs(sum(signs * ranks)) for signs in product((1, -1), repeat=len(ranks))]
    reached = abs(sum(rank if each > 0 else -rank for each, rank in zip(differences, ranks, strict=True)))
    assert p_value([0, *differences, 0]) == pytest.approx(sum(each >= reached for each in sums) / len(sums))


@pytest.mark.parametrize("pairs", [14, 20, 60])
def test_many_ties_are_as_good_as_none(pairs: int) -> None:
    assert p_value([3.0] * pairs) == 2.0 ** (1 - pairs)
    assert p_value([3.0] * pairs + [-3.0] * pairs) == 1


def test_few_false_alarms_among_the_figures_of_one_kernel() -> None:
    """Skewed figures with seeds of their own, measured twice: 400 comparisons of six boots, and 400 of twelve."""
    random = Random(2)
    for pairs in (6, 12):
        found = []
        for _ in range(400):
            seeds = [random.lognormvariate(7, 1) for _ in range(pairs)]
            twice = [[seed * random.lognormvariate(0, 0.2) for seed in seeds] for _ in range(2)]
            found.append(shift([there - here for here, there in zip(*twice, strict=True)]))
        assert 0 < sum(each.p <= CHANCE for each in found) <= CHANCE * len(found)
        assert all((each.p <= CHANCE) is not _within(each.interval, 0) for each in found)
        assert min(corrected([each.p for each in found])) > CHANCE


def test_the_interval_has_the_shift() -> None:
    random = Random(3)
    covered = [_within(shift([random.gauss(10, 3) for _ in range(8)]).interval, 10) for _ in range(400)]
    assert 0.95 * 400 <= sum(covered) < 400


def _within(interval: tuple[float, float] | None, value: float) -> bool:
    return interval is not None and interval[0] <= value <= interval[1]


def test_many_comparisons() -> None:
    assert corrected([]) == []
    assert corrected([0.01, 0.04, 0.02, 1]) == pytest.approx([0.04, 0.16 / 3, 0.04, 1])
    assert [boots_needed(number) for number in (0, 1, 2, 20, 119, 357)] == [6, 6, 7, 10, 13, 14]
    for number in (1, 20, 119):
        others = [1.0] * (number - 1)
        assert corrected([2.0 ** (1 - boots_needed(number)), *others])[0] <= CHANCE
        assert corrected([2.0 ** (2 - boots_needed(number)), *others])[0] > CHANCE

# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.analyse.sides import LEAD, lead_needed, lead_of_bad, lead_of_more


@pytest.mark.parametrize(
    ("values", "lead"),
    [([11, 12, 13], -3), ([19, 18, 17], 3), ([11, 19], 0), ([15], 0), ([14], -1), ([99], 1), ([], 0)],
)
def test_a_boot_votes_for_the_kernel_that_is_nearer(values: list[float], lead: int) -> None:
    boots = len(values)
    assert lead_of_bad(values, [10.0] * boots, [20.0] * boots) == lead
    assert lead_of_bad(values, [20.0] * boots, [10.0] * boots) == -lead


def test_repetitions_of_one_seed_are_compared_with_each_other() -> None:
    """What one seed makes of the good kernel may be what another makes of the bad one."""
    good, bad = [10, 100, 1000], [20, 200, 2000]
    assert lead_of_bad([19, 190, 1900], good, bad) == 3
    assert lead_of_bad([11, 110, 1100], good, bad) == -3
    assert lead_of_more(good, bad) == 3
    assert lead_of_more(bad, good) == -3
    assert lead_of_more([1, 2, 3], [2, 1, 3]) == 0


@pytest.mark.parametrize(
    ("good", "bad", "needed"),
    [
        ([10, 10, 10], [20, 20, 20], 1),
        ([20, 20, 20], [10, 10, 10], 1),
        ([10, 12, 11], [17, 17, 17], 1),
        ([10, 12, 11], [16, 17, 17], LEAD),
        ([10, 10, 10], [17, 14, 15], LEAD),
        ([10, 20, 15], [12, 22, 17], LEAD),
        ([10], [20], LEAD),
        ([10, 10, 10], [10, 10, 10], LEAD),
    ],
)
def test_one_vote_will_do_where_chance_moves_little(good: list[float], bad: list[float], needed: int) -> None:
    assert lead_needed(good, bad) == needed

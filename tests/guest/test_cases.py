# SPDX-License-Identifier: GPL-2.0-only
"""The touches that reported cases are made of, without any access."""

from collections import Counter
from collections.abc import Callable
from itertools import groupby, pairwise
from typing import NamedTuple

import pytest

from foliolab import process
from foliolab.errors import BuildError
from tests.guest.program import sanitized

NAMES = ("openers", "pieces", "snapshot", "parts", "reclaim", "remote", "writes")


class Touch(NamedTuple):
    page: int
    phase: int
    runner: int
    write: int


Touches = Callable[..., list[Touch]]
"""Of a case, which is named first, as it was reported but for the settings that are given."""


@pytest.fixture(scope="session")
def touches(tmp_path_factory: pytest.TempPathFactory) -> Touches:
    program = sanitized("case_touches", tmp_path_factory.mktemp("cases"))

    def plan(name: str, seed: int = 1, **given: int) -> list[Touch]:
        settings = (given.pop(each, 0) for each in ("pages", "runners", "in_turn", "unit", "units", "count", "passes"))
        argv = [program, name, *map(str, settings), str(seed)]
        assert not given
        return [Touch(*map(int, line.split())) for line in process.run(argv, BuildError).splitlines()]

    return plan


def pages_of(plan: list[Touch], runner: int) -> list[int]:
    return [touch.page for touch in plan if touch.runner == runner]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_makes_the_same_plan_and_phases_come_in_order(touches: Touches, name: str) -> None:
    first, again, other = (touches(name, seed, pages=10000) for seed in (1, 1, 2))
    assert first == again
    assert (first == other) == (name == "pieces")
    assert all(one.phase <= other.phase for one, other in pairwise(first))
    assert {touch.page for touch in first} <= set(range(10000))


@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_plan_is_one_page_of_one_runner(touches: Touches, name: str) -> None:
    # A restore touches a share of the pages.
    pages = 10 if name == "snapshot" else 1
    plan = touches(name, pages=pages, runners=1, unit=1, units=1, count=1, in_turn=1 if name == "snapshot" else 0)
    assert [(touch.page < pages, touch.phase, touch.runner) for touch in plan] == [(True, 0, 0)]


def test_openers_touch_pages_of_their_own_in_lockstep(touches: Touches) -> None:
    plan = touches("openers")
    assert [touch.runner for touch in plan] == list(range(32)) * 400
    assert max(touch.page for touch in plan) < 32768
    one, other = pages_of(plan, 0), pages_of(plan, 1)
    assert len(set(one)) > 390 and len({*one} & {*other}) < 20


def test_threads_scan_a_piece_each_of_one_tensor_after_the_other(touches: Touches) -> None:
    plan = touches("pieces", passes=2, runners=24)
    tensors = {phase: list(each) for phase, each in groupby(plan, lambda touch: touch.phase)}
    assert len(tensors) == 2 * 48
    for phase, touched in tensors.items():
        first = phase % 48 * 2048
        assert sorted(touch.page for touch in touched) == list(range(first, first + 2048))
        sizes = Counter(touch.runner for touch in touched)
        assert set(sizes.values()) == {85, 86} and len(sizes) == 24
    assert [touch.runner for touch in plan[:48]] == [*range(24), *range(24)]
    assert all(b == a + 1 for a, b in pairwise(pages_of(tensors[5], 7)))


def test_more_threads_than_pages_of_a_tensor(touches: Touches) -> None:
    plan = touches("pieces", pages=10, unit=4, runners=64)
    assert sorted(touch.page for touch in plan) == list(range(10))


def test_a_restore_touches_a_share_of_the_pages_in_runs(touches: Touches) -> None:
    plan = touches("snapshot")
    for runner in range(9):
        pages = pages_of(plan, runner)
        assert len(pages) == 131072 * 11 // 100
        runs = 1 + sum(b != a + 1 for a, b in pairwise(pages))
        assert len(pages) / runs == pytest.approx(2.3, rel=0.03)
        assert sum(pages[: len(pages) // 2]) / (len(pages) // 2) == pytest.approx(65536, rel=0.03)
        writes = [touch.write for touch in plan if touch.runner == runner]
        assert writes == [int(i % 3 == 2) for i in range(len(writes))]
    lengths = Counter(
        len(list(run)) for _, run in groupby(enumerate(pages_of(plan, 0)), lambda entry: entry[1] - entry[0])
    )
    for length in (1, 2, 3):
        assert lengths[length + 1] / lengths[length] == pytest.approx(13 / 23, rel=0.12)


def test_restores_have_most_runs_in_common_and_the_order_to_themselves(touches: Touches) -> None:
    plan = touches("snapshot")
    one, other = pages_of(plan, 0), pages_of(plan, 1)
    # Of either, one run in 20 lies elsewhere, where it may meet others.
    assert len({*one} & {*other}) / len(one) == pytest.approx(0.95**2, abs=0.02)
    assert len({*one[:100]} & {*other[:100]}) < 20


def test_five_restores_come_in_turn_and_four_at_once(touches: Touches) -> None:
    plan = touches("snapshot")
    each = len(plan) // 9
    assert [touch.runner for touch in plan[: 5 * each]] == [runner for runner in range(5) for _ in range(each)]
    assert [touch.runner for touch in plan[5 * each :]] == [5, 6, 7, 8] * each
    assert [touch.phase for touch in plan[::each]] == [0, 1, 2, 3, 4, 5, 5, 5, 5]


def test_each_part_is_touched_within_its_mapping(touches: Touches) -> None:
    plan = touches("parts")
    parts = [[touch.page for touch in each] for _, each in groupby(plan, lambda touch: touch.phase)]
    assert [len(part) for part in parts] == [4] * 400
    assert max(max(part) - min(part) for part in parts) in range(48, 64)
    assert sum(min(part) for part in parts) / 400 == pytest.approx(65536, rel=0.1)


def test_few_pages_are_used_often_between_reclaims(touches: Touches) -> None:
    plan = touches("reclaim")
    assert Counter(touch.phase for touch in plan) == dict.fromkeys(range(10), 4000)
    pages = Counter(touch.page for touch in plan)
    assert max(pages) < 26214
    assert sum(count for _, count in pages.most_common(100)) / len(plan) > 0.3


def test_threads_take_a_tensor_each_in_a_random_order(touches: Touches) -> None:
    plan = touches("remote")
    assert sorted(touch.page for touch in plan) == list(range(65536))
    assert [touch.runner for touch in plan[:48]] == [*range(24), *range(24)]
    starts = []
    for runner in range(24):
        pages = pages_of(plan, runner)
        starts += [pages[0], *(b for a, b in pairwise(pages) if b != a + 1)]
    sizes = [b - a for a, b in pairwise(sorted(starts))]
    assert {64, 128, 256, 512, 1024, 2048, 4096} <= set(sizes)
    assert starts != sorted(starts)


def test_a_write_goes_to_each_page(touches: Touches) -> None:
    plan = touches("writes")
    assert len(plan) == 8000 and {touch.write for touch in plan} == {1}
    assert sum(touch.page for touch in plan) / 8000 == pytest.approx(65536, rel=0.03)

# SPDX-License-Identifier: GPL-2.0-only
"""The touches that reported cases are made of, without any access."""

from collections import Counter
from collections.abc import Callable
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.errors import BuildError

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
    program = tmp_path_factory.mktemp("cases") / "case_touches"
    flags = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-std=gnu11"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    source = str(Path(__file__).with_name("case_touches.c"))
    process.run([process.tool(NATIVE.compiler), *flags, "-o", str(program), source], BuildError)

    def plan(name: str, seed: int = 1, **given: int) -> list[Touch]:
        settings = (given.pop(each, 0) for each in ("pages", "runners", "in_turn", "unit", "units", "count", "passes"))
        argv = [str(program), name, *map(str, settings), str(seed)]
        assert not given
        return [Touch(*map(int, line.split())) for line in process.run(argv, BuildError).splitlines()]

    return plan


def pages_of(plan: list[Touch], runner: int) -> list[int]:
    return [touch.page for touch in plan if touch.runner == runner]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_makes_the_same_plan_and_phases_come_in_order(touches: Touches, name: str) -> None:
    first, again, other = (touches(name, seed) for seed in (1, 1, 2))
    assert first == again
    assert (first == other) == (name == "pieces")
    assert all(one.phase <= other.phase for one, other in pairwise(first))
    assert {touch.page for touch in first} <= set(range(131072))


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

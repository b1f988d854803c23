# SPDX-License-Identifier: GPL-2.0-only
"""What is told of runs by faults in their order, and what a smaller window and the hint are said to read then."""

import random
from collections.abc import Callable, Iterable, Iterator

import pytest

from foliohost.estimates import Load, Touched, close, touched
from foliohost.pages import PageBits
from foliohost.runs import RunCounts
from foliohost.shares import share_out
from tests.host.seen import PAGE, file_seen, observation
from tests.host.stock import AROUND, Stock

FILE_PAGES = 1 << 17
Program = Callable[[random.Random], Iterator[int]]


def runs(number: int, length: Callable[[random.Random], int], step: int = 1, aligned: int = 1) -> Program:
    def touches(chance: random.Random) -> Iterator[int]:
        for _ in range(number):
            first, pages = chance.randrange(FILE_PAGES // aligned - 20) * aligned, length(chance)
            yield from range(first, first + pages)[::step]

    return touches


def geometric(chance: random.Random) -> int:
    length = 1
    while chance.random() > 1 / 2.3:
        length += 1
    return length


def between_pages_in_order(chance: random.Random) -> Iterator[int]:
    for page in range(2000):
        yield page
        yield chance.randrange(FILE_PAGES)


def of_two_lengths(chance: random.Random) -> Iterator[int]:
    for _ in range(1000):
        first = chance.randrange(FILE_PAGES - 12)
        yield from range(first, first + (12 if chance.random() < 0.3 else 1))


def down_a_tree(chance: random.Random) -> Iterator[int]:
    for _ in range(1500):
        leaf = chance.random()
        yield from (0, 1 + int(60 * leaf), 61 + int(3600 * leaf), 3661 + int((FILE_PAGES - 3670) * leaf))


PROGRAMS: dict[str, Program] = {
    "single pages": runs(1500, lambda _: 1),
    "runs of 8": runs(500, lambda _: 8),
    "backward": runs(500, lambda _: 8, step=-1),
    "backward, beyond a window": runs(300, lambda _: 20, step=-1),
    "of two lengths": of_two_lengths,
    "of many lengths": runs(1500, geometric),
    "between pages in order": between_pages_in_order,
    "down a tree": down_a_tree,
}


def predicted(touches: Iterable[int], window: int) -> Touched:
    """What was touched, as it is told by what a kernel with a window makes of it."""
    kernel = Stock(window).touch(touches)
    mapped = PageBits()
    for page in kernel.mapped:
        mapped.add(page, 1)
    seen = file_seen(
        size_bytes=FILE_PAGES * PAGE,
        mapped_pages=len(mapped),
        places=mapped.arounds(),
        followers=round(mapped.followers()),
        crowds=mapped.crowds(),
        fault_pages=len(kernel.cached),
        major_faults=kernel.waits,
        runs=kernel.told.seen(),
    )
    read = len(kernel.cached) * PAGE
    (share,) = share_out(observation(seen, read_bytes=read, major_faults=kernel.waits))
    return touched(share, window, kernel.waits)


@pytest.mark.parametrize("window", [32, 256])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_smaller_window_and_the_hint_read_what_is_predicted(program: str, window: int) -> None:
    """With large windows, fewer runs begin with a miss that tells their page."""
    touches = list(PROGRAMS[program](random.Random(3)))
    found = predicted(touches, window)
    for then, within in ((4, 0.15), (1, 0.15 if window == 32 else 0.25)):
        kernel, load = Stock(then).touch(touches), found.load(then)
        assert load.pages == pytest.approx(len(kernel.cached), rel=within)
        assert load.waits == pytest.approx(kernel.waits, rel=within)
        least, most = found.loads(then)
        assert close(least.pages, most.pages)


@pytest.mark.parametrize("pages", [1, 2, 4])
def test_records_that_never_leave_their_block_may_be_single_pages(pages: int) -> None:
    """They differ in nothing that is seen: so bounds are told, between which both are."""
    touches = list(runs(1000, lambda _: pages, aligned=4)(random.Random(1)))
    found = predicted(touches, 32)
    for window in (4, 1):
        least, most = found.loads(window)
        assert not close(least.pages, most.pages)
        assert 0.95 * least.pages <= len(Stock(window).touch(touches).cached) <= 1.2 * most.pages
    assert close(*(load.waits for load in found.loads(4)))


def test_neighbours_by_chance_are_no_runs() -> None:
    """Where many blocks are touched, each has neighbours soon."""
    chance = random.Random(1)
    touches = [chance.randrange(1 << 14) for _ in range(6000)]
    found = predicted(touches, 32)
    kernel = Stock(4).touch(touches)
    assert found.load(4).pages == pytest.approx(len(kernel.cached), rel=0.15)
    assert found.loads(1)[0].pages == pytest.approx(len(Stock(1).touch(touches).cached), rel=0.15)


def test_pages_are_told_where_a_mapping_is_not_aligned() -> None:
    """Blocks are aligned by address; what a fault maps tells where they begin in the file."""
    counts = RunCounts()
    counts.map(5, 20)
    counts.miss(100)  # the last but one of the block from 85 to 100
    counts.map(101, 116)
    seen = counts.seen()
    assert seen.up.began[0] == 1
    assert seen.up.gone_on[0] == 1
    assert (seen.number, seen.blocks) == (2, 3)


def test_runs_of_many_tasks_at_a_time() -> None:
    """Those of others come between the blocks of each."""
    counts = RunCounts()
    for block in range(3):
        for task in range(40):
            counts.miss((1000 * task + block) * AROUND)
    seen = counts.seen()
    assert seen.number == 40
    assert sum(seen.up.gone_on) == seen.up.further.number == 40
    assert sum(seen.down.gone_on) == 0


def test_a_run_downward_waits_again_where_its_window_ends() -> None:
    touches = list(runs(500, lambda _: 8, step=-1)(random.Random(2)))
    found = predicted(touches, 32)
    load: Load = found.load(4)
    assert load.waits == pytest.approx(3 * 500, rel=0.1)
    assert load.pages == pytest.approx(10 * 500, rel=0.1)

# SPDX-License-Identifier: GPL-2.0-only
import math
import random
from collections.abc import Sequence

import pytest

from foliohost.estimates import DiskCost, Load, Shape, present_load, touched
from foliohost.pages import PageBits
from foliohost.runs import evenly
from foliohost.shares import FileShare, share_out
from tests.host.seen import PAGE, file_seen, observation

FILE_PAGES = 1 << 18
"""Of the file that ``file_seen`` has."""
RUNS = 300


def share(read_pages: int, majors: int, **changes: object) -> FileShare:
    (found,) = share_out(
        observation(file_seen(cached_pages=read_pages, **changes), read_bytes=read_pages * PAGE, major_faults=majors)
    )
    return found


def read_at_random(touches: Sequence[int], window_pages: int) -> int:
    """How often touches of a file wait that has windows around misses and keeps everything."""
    cached: set[int] = set()
    waits = 0
    for page in touches:
        if page not in cached:
            waits += 1
            first = max(0, page - window_pages // 2)
            cached |= set(range(first, first + window_pages))
    return waits


@pytest.mark.parametrize("touches", [500, 4000, 20_000])
@pytest.mark.parametrize("window_pages", [32, 256])
def test_touches_at_random_that_the_present_window_has_spared(touches: int, window_pages: int) -> None:
    """The more of a file windows cover, the more waits a smaller one has than there are now."""
    numbers = random.Random(touches)
    chosen = [numbers.randrange(FILE_PAGES) for _ in range(touches)]
    blocks = {page // 16 for page in chosen}
    waits = read_at_random(chosen, window_pages)
    read = min(FILE_PAGES, waits * window_pages)
    crowds = ((len(blocks), -math.log(1 - len(blocks) / (FILE_PAGES / 16))),)
    seen = share(read, waits, places=len(blocks), mapped_pages=16 * len(blocks), crowds=crowds)
    found = touched(seen, window_pages, waits)
    for window in (4, 1):
        then = read_at_random(chosen, window)
        assert found.load(window).waits == pytest.approx(then, rel=0.1)
        assert found.load(window).pages == pytest.approx(then * window, rel=0.15)


@pytest.mark.parametrize("run_pages", [8, 40])
def test_blocks_behind_one_another_tell_how_long_runs_are(run_pages: int) -> None:
    """Runs that begin anywhere; within a block, nothing tells what was touched."""
    numbers = random.Random(run_pages)
    firsts = [numbers.randrange(FILE_PAGES - run_pages) for _ in range(RUNS)]
    touches = PageBits()
    for first in firsts:
        touches.add_run(first, first + run_pages)
    places = touches.arounds()
    seen = share(RUNS * 32, RUNS, places=places, followers=touches.followers(), mapped_pages=16 * places)
    found = touched(seen, 32, RUNS)
    assert found.run_pages == pytest.approx(run_pages, rel=0.15)
    assert found.runs == pytest.approx(RUNS, rel=0.1)


def test_a_run_reads_on_from_the_mark_in_its_window() -> None:
    """With four pages: the one before the last is marked, then the first behind, and then each fourth."""
    for run_pages, windows, pages in ((1, 1, 4), (2, 2, 6.5), (5, 3.5, 12), (9, 4.5, 16), (13, 5.5, 20)):
        load = Shape(evenly(run_pages), evenly(1)).load(4)
        assert load.waits == 1
        assert load.requests == pytest.approx(windows, abs=0.3)
        assert load.pages == pytest.approx(pages, abs=1)
    assert Shape(evenly(9), evenly(1)).load(1) == Load(9, 9, 9, 9)


def test_a_run_downward_waits_for_each_half_window() -> None:
    for run_pages, waits in ((1, 1), (3, 1), (4, 2), (10, 4), (100, 34)):
        load = Shape(evenly(1), evenly(run_pages)).load(4)
        assert load.waits == load.requests == load.turns == pytest.approx(waits, rel=0.02)
        assert load.pages == pytest.approx(4 + 3 * (waits - 1), rel=0.02)


def test_a_stream_is_as_long_as_what_it_has_read() -> None:
    found = touched(share(6400, 2, places=400, mapped_pages=6400, crowds=((400, 4.6),)), 32, 2)
    assert found.run_pages == pytest.approx(3200, rel=0.02)
    load = found.load(4)
    assert load.waits == 2
    assert load.pages == pytest.approx(6400, rel=0.02)
    # Two requests are under way at a time.
    assert load.turns == pytest.approx(load.requests / 2, rel=0.01)


def test_where_memory_is_short_a_smaller_window_waits_as_often() -> None:
    """Of touches at random, memory holds as large a part as before."""
    places = {"places": 2000, "mapped_pages": 32000, "crowds": ((2000, 0.1),)}
    for evicted, waits in ((0, 2000), (32000, 1000)):
        seen = share(32000, 1000, evicted_pages=evicted, **places)
        assert touched(seen, 32, 1000).load(4).waits == pytest.approx(waits, rel=0.15)


def test_pages_that_are_read_alone_are_counted_one_by_one() -> None:
    hinted = share(5000, 5000, hint="random", places=5000, mapped_pages=5000, crowds=((5000, 0.36),))
    assert touched(hinted, 32, 5000).load(1).waits == pytest.approx(5000, rel=0.2)


def test_faults_after_the_last_look_are_taken_to_be_as_those_before() -> None:
    half = share(32000, 1000, places=500, mapped_pages=8000)
    assert touched(half, 32, 1000, unseen=500).runs == 1000


def test_seconds() -> None:
    assert present_load(1000 * 32 * PAGE, 1000, 32).seconds(DiskCost(1000, 10), 10) == pytest.approx(1.32)


def test_what_is_read_ahead_is_waited_for_where_a_program_has_nothing_else_to_do() -> None:
    load, cost = Load(100, 1, 25, 13), DiskCost(1000, 10)
    took = [load.seconds(cost, over) for over in (0.01, 0.014, 0.02, 10)]
    assert took == pytest.approx([0.014, 0.014, 0.008, 0.00104])


def test_a_disk_that_rested_longer_takes_longer_up_to_the_pause_that_was_probed() -> None:
    load, cost = Load(1000, 1000, 1000, 1000), DiskCost(90, 10, 200)
    took = [load.seconds(cost, over) for over in (0.05, 0.1, 1.1, 4.1, 100)]
    assert took == pytest.approx([0.1, 0.1, 0.2, 0.3, 0.3])
    assert Load(0, 0, 0, 0).seconds(cost, 10) == 0


def test_of_a_file_that_was_emptied_something_is_predicted() -> None:
    found = touched(share(3200, 100, places=100, mapped_pages=1600, crowds=(), size_bytes=0), 32, 100)
    assert found.load(4).waits > 0

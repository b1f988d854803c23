# SPDX-License-Identifier: GPL-2.0-only
"""The pages of access patterns that are made of objects, trees and threads, as programs have them."""

from collections import Counter
from itertools import pairwise
from math import ceil

import pytest

from tests.guest.program import Plan

ORDERS = ["forward", "backward", "shuffled"]


@pytest.mark.parametrize("order", ORDERS)
def test_objects_are_whole(plan: Plan, order: str) -> None:
    size, file_pages = 8, 10000
    pages = plan("objects", file_pages, 100 * size + 3, order=order, object_pages=size)
    objects = [pages[i : i + size] for i in range(0, len(pages), size)]
    assert [len(each) for each in objects] == [size] * 100 + [3]
    orders = set()
    for each in objects[:-1]:
        first = min(each)
        assert sorted(each) == list(range(first, first + size))
        orders.add(tuple(page - first for page in each))
    up = tuple(range(size))
    if order == "shuffled":
        assert len(orders) > 95
    else:
        assert orders == {up if order == "forward" else up[::-1]}
    starts = [min(each) for each in objects[:-1]]
    assert len(set(starts)) > 95
    assert min(starts) < file_pages // 10 < file_pages * 9 // 10 < max(starts)


def test_an_object_fits_into_the_file(plan: Plan) -> None:
    assert set(plan("objects", 10, 400, object_pages=9)[::9]) == {0, 1}
    assert plan("objects", 3, 7, object_pages=100) == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.parametrize(("file_pages", "levels"), [(100, 2), (10000, 3), (1000000, 4), (5242880, 5)])
def test_a_btree_is_entered_at_its_root(plan: Plan, file_pages: int, levels: int) -> None:
    descents = 3000
    pages = plan("btree", file_pages, descents * levels)
    level = [pages[depth::levels] for depth in range(levels)]
    assert len(set(level[0])) == 1
    # No page is on two levels, and below each are at most as many as fit.
    assert sum(len(set(each)) for each in level) == len(set(pages))
    for above, below in pairwise(level):
        links = set(zip(above, below, strict=True))
        assert len(links) == len(set(below))
        assert max(Counter(page for page, _ in links).values()) <= 128
    inner, width = 0, file_pages
    while width > 1:
        width = ceil(width / 128)
        inner += width
    assert len({page for each in level[:-1] for page in each}) <= inner
    # Leaves are all that is left, one as likely as the other.
    leaves = file_pages - inner
    distinct = leaves * (1 - (1 - 1 / leaves) ** descents)
    assert len(set(level[-1])) == pytest.approx(distinct, rel=0.05)
    assert sum(level[-1]) / descents == pytest.approx(file_pages / 2, rel=0.05)


def test_the_smallest_btrees(plan: Plan) -> None:
    assert plan("btree", 1, 3) == [0, 0, 0]
    # A leaf alone is the root; two need one above them.
    assert len(set(plan("btree", 2, 100))) == 1
    assert len(set(plan("btree", 3, 100))) == 3
    # A whole tree fills the file to the last page.
    assert set(plan("btree", 128 + 1, 20000)) == set(range(129))


def test_inner_pages_are_scattered(plan: Plan) -> None:
    inner = sorted(set(plan("btree", 10000, 60000)[1::3]))
    assert len(inner) == 78
    assert {page // 1000 for page in inner} == set(range(10))
    assert inner != list(range(inner[0], inner[0] + len(inner)))


def pieces(pages: list[int], other: int = 1) -> list[list[int]]:
    """Cut wherever the next page is not the one that far on."""
    found = [[pages[0]]]
    for one, page in pairwise(pages):
        if page - one == other:
            found[-1].append(page)
        else:
            found.append([page])
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_blobs_have_any_size_and_one_place(plan: Plan, order: str) -> None:
    file_pages, largest = 90001, 20
    pages = plan("blobs", file_pages, 100000, order=order, object_pages=largest)
    blobs: dict[int, set[int]] = {}
    sizes: Counter[int] = Counter()
    at = 0
    while at < len(pages) - largest:
        # Each lies in a piece of its own.
        piece = pages[at] // largest
        end = next(i for i in range(at + 1, len(pages)) if pages[i] // largest != piece or i - at == largest)
        blob = pages[at:end]
        if len(set(blob)) < len(blob):
            # The same one twice in a row.
            end = at + len(set(blob))
            blob = pages[at:end]
        assert sorted(blob) == list(range(min(blob), max(blob) + 1))
        assert blobs.setdefault(piece, set(blob)) == set(blob)
        if order != "shuffled" and len(blob) > 1:
            assert (blob[0] < blob[-1]) == (order == "forward")
        sizes[len(blob)] += 1
        at = end
    assert set(sizes) == set(range(3, largest + 1))
    assert all(count == pytest.approx(sum(sizes.values()) / 18, rel=0.25) for count in sizes.values())
    assert 3500 < len(blobs) <= file_pages // largest
    # They begin anywhere.
    starts = Counter(min(blob) % 8 for blob in blobs.values())
    assert all(count == pytest.approx(len(blobs) / 8, rel=0.4) for count in starts.values())


def test_a_hot_spot_stays_for_a_burst_and_may_be_hot_again(plan: Plan) -> None:
    size, burst, file_pages = 50, 200, 250000
    pages = plan("hot-spots", file_pages, 400 * burst + 7, object_pages=size, burst=burst)
    spots = [pages[i : i + burst] for i in range(0, 400 * burst, burst)]
    assert all(max(spot) - min(spot) < size for spot in spots)
    assert sum(len(set(spot)) for spot in spots) / len(spots) == pytest.approx(size, rel=0.03)
    places = [min(spot) // 10 for spot in spots]
    old = sum(any(abs(place - other) <= 1 for other in places[:at]) for at, place in enumerate(places))
    assert old == pytest.approx(100, abs=35)
    # It has moved in most cases, and at random.
    assert sum(abs(one - other) > 100 for one, other in pairwise(places)) > 350
    assert min(places) < 2500 < 22500 < max(places)


def test_a_merge_goes_forward_in_each_run_at_its_own_speed(plan: Plan) -> None:
    runs, file_pages, count = 5, 100000, 40000
    pages = plan("merge", file_pages, count, streams=runs, burst=9)
    expected = [file_pages // runs * run for run in range(runs)]
    found = Counter[int]()
    looked_up = []
    for page in pages:
        if page in expected:
            run = expected.index(page)
            expected[run] += 1
            found[run] += 1
        else:
            looked_up.append(page)
    assert len(looked_up) == pytest.approx(count / 10, rel=0.1)
    assert sum(looked_up) / len(looked_up) == pytest.approx(file_pages / 2, rel=0.05)
    for run in range(runs):
        assert found[run] == pytest.approx(0.9 * count * (2 * run + 1) / 25, rel=0.1)
    # Their turns are left to chance.
    turns = [page // (file_pages // runs) for page in pages]
    assert len(Counter(zip(turns, turns[1:], turns[2:], strict=False))) == runs**3


def test_a_scan_goes_on_from_the_leaf_that_was_found(plan: Plan) -> None:
    file_pages, most, levels = 10000, 40, 3
    pages = plan("btree-scan", file_pages, 60000, object_pages=most)
    starts = [at for at, page in enumerate(pages) if page == 0]
    inner = 1 + 78
    lengths = Counter[int]()
    for start, end in pairwise(starts):
        root, above, *leaves = pages[start:end]
        assert (root, above) == (0, 1 + (leaves[0] - inner) // 128)
        assert leaves == list(range(leaves[0], leaves[0] + len(leaves)))
        assert inner <= leaves[0]
        lengths[len(leaves)] += 1
    assert set(lengths) == set(range(1, most + 1))
    assert all(count == pytest.approx(len(starts) / most, rel=0.4) for count in lengths.values())
    # One leaf alone is found without a scan, and a scan ends with the leaves.
    assert plan("btree-scan", 10000, 60, object_pages=1)[::levels] == [0] * 20
    assert max(plan("btree-scan", 129, 5000, object_pages=1000)) == 128


def test_threads_that_scan_go_forward_by_turns(plan: Plan) -> None:
    threads, burst, count = 3, 20, 60000
    pages = plan("scanners", 10_000_000, count, streams=threads, burst=burst, seed=4)
    turns = pieces(pages)
    ends: list[int] = []
    done = Counter[int]()
    for turn in turns:
        if turn[0] - 1 in ends:
            thread = ends.index(turn[0] - 1)
            ends[thread] = turn[-1]
        else:
            thread = len(ends)
            ends.append(turn[-1])
        done[thread] += len(turn)
    assert len(ends) == threads
    # Two turns of one thread in a row look like one.
    assert min(map(len, turns)) == 1
    assert max(map(len, turns)) > burst
    assert min(done.values()) < 0.7 * max(done.values())
    # Alone it is but a scan.
    assert len(pieces(plan("scanners", 10_000_000, 1000, streams=1, burst=5))) == 1


def test_threads_that_read_objects_finish_them(plan: Plan) -> None:
    threads, size, count = 2, 11, 30000
    pages = plan("readers", 10_000_000, count, streams=threads, object_pages=size, burst=4)
    open_at: dict[int, int] = {}
    whole = 0
    for page in pages:
        done = open_at.pop(page, 0) + 1
        if done < size:
            open_at[page + 1] = done
        else:
            whole += 1
        assert len(open_at) <= threads
    assert whole > count / size - threads - 1
    # Bursts cut objects.
    assert len(pieces(pages)) > 1.2 * count / size
    # One page is a random one; alone, a thread reads one object after the other.
    assert sum(plan("readers", 1000, 9000, streams=2, object_pages=1, burst=3)) / 9000 == pytest.approx(500, rel=0.03)
    alone = pieces(plan("readers", 10_000_000, 100 * size, streams=1, object_pages=size, burst=3))
    assert [len(each) for each in alone] == [size] * 100


def test_one_thread_scans_while_others_read(plan: Plan) -> None:
    pages = plan("scan-readers", 10_000_000, 20000, streams=2, object_pages=1, burst=6)
    scan = max(pieces(sorted(set(pages))), key=len)
    assert 2000 < len(scan) < 18000
    # In order, for all that lies between.
    assert [page for page in pages if scan[0] <= page <= scan[-1]][:1000] == scan[:1000]
    others = [page for page in pages if not scan[0] <= page <= scan[-1]]
    assert len(set(others)) > 0.99 * len(others)
    assert sum(others) / len(others) == pytest.approx(5_000_000, rel=0.05)

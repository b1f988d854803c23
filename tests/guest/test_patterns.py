# SPDX-License-Identifier: GPL-2.0-only
"""The pages that each access pattern is made of, without any access."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from math import ceil, erf
from pathlib import Path

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.errors import BuildError

NAMES = [
    "random",
    "sequential",
    "reverse",
    "stride",
    "zipf",
    "streams",
    "pingpong",
    "objects",
    "btree",
    "scan-random",
    "phases",
    "drift",
    "blobs",
    "hot-spots",
    "merge",
    "walk",
    "btree-scan",
    "scanners",
    "readers",
    "scan-readers",
]
ORDERS = ["forward", "backward", "shuffled"]

Plan = Callable[..., list[int]]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    program = tmp_path_factory.mktemp("patterns") / "pattern_pages"
    flags = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-std=gnu11"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    source = str(Path(__file__).with_name("pattern_pages.c"))
    compiler = process.tool(NATIVE.compiler)
    process.run([compiler, *flags, "-o", str(program), source], BuildError)

    def pages(
        name: str,
        file_pages: int,
        count: int,
        *,
        order: str = "forward",
        stride: int = 0,
        streams: int = 0,
        object_pages: int = 0,
        burst: int = 0,
        region: float = 0,
        seed: int = 1,
    ) -> list[int]:
        settings = [name, order, stride, streams, object_pages, burst, region, seed, file_pages, count]
        output = process.run([str(program), *map(str, settings)], BuildError)
        return [int(line) for line in output.split()]

    return pages


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file_pages", [1, 2, 3, 127, 130, 1000, 5242880, (1 << 52) - 5])
def test_every_page_is_in_the_file(plan: Plan, name: str, file_pages: int) -> None:
    most = 1 << 64
    for many in (0, 1, 7, 300) if file_pages > 5242880 else (0, 1, 7, 300, most - 1):
        sizes = {"stride": many, "streams": many, "object_pages": many, "burst": many}
        pages = plan(name, file_pages, 1001, **sizes, region=1e-9, seed=most - 1)
        assert len(pages) == 1001
        assert max(pages) < file_pages


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_depends_on_its_seed_only_where_it_is_random(plan: Plan, name: str) -> None:
    first, again, other = (
        plan(name, 10000, 300, order="shuffled", stride=50, streams=3, object_pages=9, burst=4, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == again
    assert (first == other) == (name in ("sequential", "reverse", "stride", "streams", "pingpong"))


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("random", [3300545, 2026599, 4347230, 1231115]),
        ("stride", [0, 1021, 2042, 3063]),
        ("zipf", [4466416, 2649830, 4754531, 3615346]),
        ("objects", [2060895, 2060893, 2060892, 2060894]),
        ("btree", [4708675, 2166831, 4352609, 5139639]),
        ("scan-random", [0, 3300545, 1, 2026599]),
        ("drift", [0, 247, 528, 833]),
        ("blobs", [2716422, 2716421, 2716423, 1496807]),
        ("hot-spots", [2060895, 2060894, 1650453, 1650454]),
        ("merge", [2621440, 2621441, 1541493, 1140630]),
        ("walk", [3300545, 3302819, 3303394, 3302060]),
        ("btree-scan", [0, 1, 40, 4942]),
        ("scanners", [4347230, 4347231, 4347232, 3300545]),
        ("readers", [1172594, 1172595, 2558063, 2558064]),
        ("scan-readers", [1172594, 1172595, 3300545, 3300546]),
    ],
)
def test_samples_stay_comparable(plan: Plan, name: str, pages: list[int]) -> None:
    """What is stored was measured with these; and they are the same on every machine."""
    assert plan(name, 5242880, len(pages), order="shuffled", stride=1021, streams=2, object_pages=4, burst=2) == pages


def test_patterns_without_a_choice(plan: Plan) -> None:
    assert plan("sequential", 4, 6) == [0, 1, 2, 3, 0, 1]
    assert plan("reverse", 4, 6) == [3, 2, 1, 0, 3, 2]
    assert plan("stride", 10, 6, stride=24) == [0, 4, 8, 2, 6, 0]
    assert plan("pingpong", 5, 8) == [0, 4, 1, 3, 2, 2, 3, 1]
    assert plan("streams", 10, 9, streams=3) == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert plan("streams", 4, 6, streams=2) == [0, 2, 1, 3, 2, 0]
    assert plan("streams", 3, 4, streams=100) == [0, 1, 2, 1]


def test_a_region_is_a_part_of_the_file(plan: Plan) -> None:
    starts = set()
    for seed in range(5):
        pages = plan("random", 100000, 3000, region=0.001, seed=seed)
        assert len(set(pages)) == max(pages) - min(pages) + 1 == 100
        starts.add(min(pages))
    assert len(starts) == 5
    assert len(set(plan("random", 1000, 50, region=1e-6))) == 1
    assert plan("random", 1000, 50, region=1) == plan("random", 1000, 50)


def test_zipf_follows_its_law(plan: Plan) -> None:
    file_pages, count = 10000, 400000
    weights = [rank**-0.99 for rank in range(1, file_pages + 1)]
    pages = Counter(plan("zipf", file_pages, count))
    touches = sorted(pages.values(), reverse=True)
    # Ranks on either side of an octave's end, and shares of many ranks, whose order among themselves does not matter.
    for first, end in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 8), (8, 16), (0, 100), (0, 1000)]:
        expected = count * sum(weights[first:end]) / sum(weights)
        assert sum(touches[first:end]) == pytest.approx(expected, rel=0.03)
    # Seeds draw other touches of the same hot pages.
    hottest = [page for page, _ in pages.most_common(20)]
    again = Counter(plan("zipf", file_pages, count, seed=2))
    assert [page for page, _ in again.most_common(4)] == hottest[:4]
    # They lie all over the file.
    assert len({page // (file_pages // 10) for page in hottest}) >= 6
    assert min(abs(one - other) for one, other in pairwise(sorted(hottest))) < file_pages // 40


def test_every_page_has_a_rank(plan: Plan) -> None:
    for file_pages in (1, 2, 3, 63, 64, 65):
        assert set(plan("zipf", file_pages, 100000)) == set(range(file_pages))


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


def test_scan_and_random_take_turns(plan: Plan) -> None:
    pages = plan("scan-random", 100000, 2000)
    assert pages[::2] == list(range(1000))
    assert len(set(pages[1::2])) > 980
    assert sum(pages[1::2]) / 1000 == pytest.approx(50000, rel=0.1)
    assert plan("scan-random", 3, 9)[::2] == [0, 1, 2, 0, 1]


def test_phases_go_on_where_they_stopped(plan: Plan) -> None:
    pages = plan("phases", 100000, 3001)
    assert pages[:1000] + pages[2000:] == list(range(2001))
    assert len(set(pages[1000:2000])) > 980
    assert sum(pages[1000:2000]) / 1000 == pytest.approx(50000, rel=0.1)
    assert plan("phases", 100, 2) == [0, 1]


def test_drift_goes_forward(plan: Plan) -> None:
    pages = plan("drift", 10000, 30001, stride=5)
    assert pages[0] == 0
    steps = Counter((other - one) % 10000 for one, other in pairwise(pages))
    assert set(steps) == set(range(5))
    assert all(count == pytest.approx(6000, rel=0.05) for count in steps.values())
    assert set(plan("drift", 100, 50, stride=1)) == {0}


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


def test_the_steps_of_a_walk_are_normally_distributed(plan: Plan) -> None:
    file_pages, count, deviation = 1 << 40, 40000, 300
    pages = plan("walk", file_pages, count, stride=deviation)
    steps = [other - one for one, other in pairwise(pages)]
    assert all(abs(step) < 6 * deviation for step in steps)
    assert sum(steps) / count == pytest.approx(0, abs=5)
    assert (sum(step**2 for step in steps) / count) ** 0.5 == pytest.approx(deviation, rel=0.02)
    for times in (0.5, 1, 2):
        within = sum(abs(step) <= times * deviation for step in steps) / count
        assert within == pytest.approx(erf(times / 2**0.5), abs=0.01)
    # The end of the file is next to its start.
    assert plan("walk", 100, 5000, stride=30) != plan("walk", 101, 5000, stride=30)
    around = plan("walk", 1000, 5000, stride=30)
    assert {min(abs(one - other), 1000 - abs(one - other)) // 180 for one, other in pairwise(around)} == {0}
    assert {page // 100 for page in around} == set(range(10))


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

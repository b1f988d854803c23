# SPDX-License-Identifier: GPL-2.0-only
"""The pages that each access pattern is made of, without any access."""

from collections import Counter
from itertools import pairwise
from math import erf

import pytest

from foliolab.model.library import KINDS
from tests.guest.program import Plan


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("file_pages", [1, 2, 3, 127, 130, 1000, 5242880, (1 << 52) - 5])
def test_every_page_is_in_the_file(plan: Plan, name: str, file_pages: int) -> None:
    most = 1 << 64
    for many in (0, 1, 7, 300) if file_pages > 5242880 else (0, 1, 7, 300, most - 1):
        sizes = {"stride": many, "streams": many, "object_pages": many, "burst": many}
        pages = plan(name, file_pages, 1001, **sizes, region=1e-9, seed=most - 1)
        assert len(pages) == 1001
        assert max(pages) < file_pages


@pytest.mark.parametrize("name", KINDS)
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

# SPDX-License-Identifier: GPL-2.0-only
"""The rivals: what each of them is known to read, access by access."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

import pytest

from foliolab.model.library import Counts, Machine, Pattern, replay, simulate

PAGES = 8192
APART = 300
"""Pages between accesses that have nothing to do with each other; no power of two divides it but 4."""


def machine(rules: str, window: int = 64, request: int = 16) -> Machine:
    """With memory for all of the file."""
    return Machine(rules, PAGES, PAGES, window, request)


def touch(on: Machine, pages: Iterable[int]) -> Counts:
    return replay(on, array("I", pages))


def reads(on: Machine, pages: Sequence[int]) -> dict[int, int]:
    """How many pages are read at each access, of those that read any."""
    before, found = 0, {}
    for number, page in enumerate(pages):
        total = touch(on, pages[: number + 1]).pages_read
        if total > before:
            found[page] = total - before
        before = total
    return found


def interleaved(streams: int, length: int) -> list[int]:
    """So many streams forward, page by page in turn; none begins at the start of the file."""
    return [1 + stream * (PAGES // streams) + page for page in range(length) for stream in range(streams)]


@pytest.mark.parametrize("rules", ["xnu", "freebsd", "zfetch", "competitive", "linux-7.3", "first-steps"])
@pytest.mark.parametrize("window", [1, 2, 7, 32])
def test_windows_of_any_size(rules: str, window: int) -> None:
    """Nothing is read twice or forgotten where there is memory, and little is read where windows are."""
    for kind in ("sequential", "reverse"):
        counts = simulate(machine(rules, window), Pattern(kind), PAGES)
        assert counts.pages_read == counts.accesses == PAGES
    counts = touch(machine(rules, window), range(PAGES - 1, 0, -APART))
    assert counts.pages_read <= window * counts.major_faults


def test_xnu_doubles_windows_of_runs_up_to_the_largest() -> None:
    assert reads(machine("xnu"), range(200)) == {0: 8, 8: 8, 16: 16, 32: 32, 64: 64, 128: 64, 192: 64}


def test_xnu_sees_runs_backward() -> None:
    # The first window has its page in the middle.
    assert reads(machine("xnu"), range(1000, 900, -1)) == {1000: 8, 995: 5, 990: 10, 980: 20, 960: 40, 920: 64}


def test_xnu_takes_three_steps_for_a_run() -> None:
    assert reads(machine("xnu"), [1000, 5000, 999, 998, 997, 996, 995]) == {1000: 8, 5000: 8, 995: 4}
    assert reads(machine("xnu"), [1000, 5000, 998, 997, 996, 995]) == {1000: 8, 5000: 8, 995: 5}


def test_xnu_reads_the_least_around_random_pages() -> None:
    assert reads(machine("xnu"), [5000, 1000, 3000, 995]) == {5000: 8, 1000: 8, 3000: 8, 995: 5}


def test_xnu_reads_as_large_a_share_as_is_used() -> None:
    """Of seven pages that come with the one that is needed, one is used: a seventh of 64, rounded up."""
    found = reads(machine("xnu"), [start + page for start in range(100, 26 * APART, APART) for page in (0, 1)])
    # 64 * 23 / 161, 64 * 24 / 170 and 64 * 25 / 179
    assert list(found.values()) == [8] * 23 + [10, 10, 9]
    found = reads(machine("xnu"), range(100, 26 * APART, APART))
    assert set(found.values()) == {8}


def test_freebsd_grows_by_eight_pages_up_to_the_largest() -> None:
    assert reads(machine("freebsd"), range(300)) == {0: 24, 24: 32, 56: 40, 96: 48, 144: 56, 200: 64, 264: 64}


def test_freebsd_knows_no_more_than_256_pages() -> None:
    sizes = [*range(24, 257, 8), 256, 256]
    starts = [0, *accumulate(sizes[:-1])]
    assert reads(machine("freebsd", 1024), starts) == dict(zip(starts, sizes, strict=True))


def test_freebsd_reads_an_aligned_cluster_around_random_pages() -> None:
    assert reads(machine("freebsd"), [100, 4000, 111, 112 + 30]) == {100: 16, 4000: 16, 142: 16}
    # A page behind the last read makes growth begin anew; what is cached of a cluster is not read past.
    assert reads(machine("freebsd"), [100, 112, 120, 5000, 139]) == {100: 16, 112: 8, 120: 16, 5000: 16, 139: 8}


def test_zfetch_doubles_the_distance_with_each_access() -> None:
    # Page 0 is ignored, page 1 begins a stream; then one more page with each access keeps the distance.
    found = reads(machine("zfetch", 32, request=1), range(12))
    assert found == {0: 1, 1: 1, 2: 2, 3: 2, 4: 3, 5: 5, 6: 9, 7: 17, 8: 1, 9: 1, 10: 1, 11: 1}
    found = reads(machine("zfetch", 32, request=8), range(24))
    assert found == {0: 1, 1: 1, 2: 2, 3: 2, 4: 3, 5: 5, 6: 9, 7: 17, 15: 8, 23: 8}


@pytest.mark.parametrize(
    "pages",
    [range(1, PAGES, APART), range(PAGES - 1, PAGES - 200, -1), range(1, 400, 2)],
    ids=["random", "backward", "every other page"],
)
def test_zfetch_reads_no_window_around_a_miss(pages: range) -> None:
    assert touch(machine("zfetch"), pages).pages_read == len(pages)


def test_zfetch_goes_on_over_few_holes() -> None:
    pages = [page for page in range(1, 500) if page % 5]
    counts = touch(machine("zfetch"), pages)
    assert counts.pages_read > len(pages)
    assert counts.waits < 20


def test_zfetch_has_eight_streams() -> None:
    alone = touch(machine("zfetch"), interleaved(1, 100)).waits
    assert alone == 2
    for streams in (2, 8):
        assert touch(machine("zfetch"), interleaved(streams, 100)).waits == streams * alone
    assert touch(machine("zfetch"), interleaved(9, 100)).waits == 900


def test_zfetch_joins_what_is_accessed_out_of_order() -> None:
    # It expects 5, and has read up to 8. With 7, one page of four is missing: it expects 9 now, and has seen 10.
    found = reads(machine("zfetch", 32, request=1), [1, 2, 3, 4, 6, 8, 10, 7])
    assert found == {1: 1, 2: 2, 3: 2, 4: 3, 10: 1, 7: 7}


def test_zfetch_keeps_a_stream_beside_random_accesses() -> None:
    """Ten of them for each of its own, once it is one."""
    others = range(2000, PAGES, 21)
    pages = [1, 2, 3, *(page for n, other in enumerate(others) for page in ([4 + n // 10] * (n % 10 == 0) + [other]))]
    assert touch(machine("zfetch", 8), pages).waits == 2 + len(others)


def test_competitive_reads_what_a_request_costs() -> None:
    assert reads(machine("competitive", 64, request=16), range(40)) == {0: 16, 1: 16, 16: 16, 32: 16}
    assert touch(machine("competitive", 64, request=16), range(200)).waits == 1
    assert reads(machine("competitive", 8, request=16), range(20)) == {0: 8, 1: 8, 8: 8, 16: 8}


def test_competitive_reads_random_pages_alone() -> None:
    found = reads(machine("competitive"), [5000, 1000, 3000, 1001, 4999])
    assert found == {5000: 1, 1000: 1, 3000: 1, 1001: 16, 4999: 1}


def test_competitive_follows_any_number_of_streams() -> None:
    assert touch(machine("competitive"), interleaved(20, 100)).waits == 2 * 20


PATTERNS = [
    Pattern("random"), Pattern("sequential"), Pattern("reverse"), Pattern("zipf"), Pattern("scan-random"),
    Pattern("stride", stride=17), Pattern("streams", streams=4), Pattern("objects", object=24),
]  # fmt: skip


def test_linux_7_3_counts_hits_as_published_does() -> None:
    on = replace(machine("linux-7.3"), memory_pages=PAGES // 3)
    differs = 0
    for pattern in PATTERNS:
        published, off = (simulate(replace(on, rules=rules), pattern, 6000) for rules in ("published", "off"))
        assert simulate(on, pattern, 6000) == published
        differs += published != off
    assert differs


def test_linux_7_3_stops_after_a_hundred_misses() -> None:
    found = list(reads(machine("linux-7.3", 4), range(1, PAGES, 60)).values())
    assert found == [*[4] * 100, *[1] * (len(found) - 100)]

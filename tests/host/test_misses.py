# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost.devices import device_of
from foliohost.observation import Observation
from foliohost.processes import PAGE_BYTES, Counters
from foliohost.verdict import MISS_LIMIT, DiagnosisKind, MissCounter, judge, miss_counter
from foliohost.watch import Watch
from foliohost.windows import set_device
from tests.host.conftest import Toucher
from tests.host.seen import PAGE, file_seen, look_ups, observation
from tests.host.toucher import drop


def found(seen: Observation, at: int = 0) -> MissCounter | None:
    verdict = judge(seen)
    return miss_counter(seen, verdict, verdict.files[at])


def alone(pages: int = 1000, fresh: int = 1000, other: int = 0, **changes: object) -> Observation:
    """That many pages of a file, each with a wait, and pages from elsewhere."""
    data = file_seen(mapped_pages=pages, places=pages, cached_pages=pages, fresh_pages=fresh)
    seen = observation(data, read_bytes=(pages + other) * PAGE, major_faults=pages + other)
    return replace(seen, files=(replace(data, **changes),))  # type: ignore[arg-type]


def test_misses_that_read_windows_without_end() -> None:
    assert found(look_ups()) is MissCounter.HELD_DOWN
    data = look_ups().files[0]
    # Each open file has a counter of its own: twelve could read so many windows.
    assert found(replace(look_ups(), files=(replace(data, processes=tuple(range(12))),))) is None
    # What was read ahead of streams was no miss's.
    assert found(replace(look_ups(), counted=Counters(32000 * PAGE, 0, MISS_LIMIT))) is None
    # Windows that are much larger than what a wait reads are not what it reads.
    assert found(replace(look_ups(), files=(replace(data, window_kb=4096),))) is None
    # Of processes that come and go, looks meet a few only.
    assert found(replace(look_ups(), files=(replace(data, come_and_gone=True),))) is None
    # Without a window nothing is told.
    assert found(replace(look_ups(), files=(replace(data, window_kb=0),))) is None


def test_misses_that_read_pages_alone() -> None:
    assert found(alone()) is MissCounter.OVER_LIMIT
    assert found(alone(other=900)) is MissCounter.OVER_LIMIT
    for unclear in (
        alone(pages=90, fresh=90),
        alone(fresh=400),  # most had their neighbours in memory already
        alone(other=1100),  # most waits were for something else
        alone(cached_pages=None),
        alone(cached_pages=1300),  # others have read it, too
        alone(hint="random"),
        alone(text=True),
        alone(window_kb=8),
        replace(alone(), counted=Counters(1300 * PAGE, 0, 1000)),
        replace(alone(), switches={"/module": True}),
    ):
        assert found(unclear) is None


@pytest.mark.parametrize("window_pages", [4, 32, 2048])
def test_no_mixture_of_windows_with_other_pages_looks_like_pages_alone(window_pages: int) -> None:
    for windows in (1, 10, 200):
        read = windows * window_pages
        for single in range(0, 10 * read, max(1, read // 50)):
            # Pages whose neighbours are cached, or pages from elsewhere.
            holes = alone(pages=read + single, fresh=read)
            elsewhere = alone(pages=read, fresh=read)
            for seen in (holes, elsewhere):
                counted = Counters((read + single) * PAGE, 0, windows + single)
                assert found(replace(seen, counted=counted)) is not MissCounter.OVER_LIMIT


def touched(
    private_disk: Path, start: Callable[..., Toucher], window_kb: int, touches: str = "random 200"
) -> Observation:
    """Touches of an open file with that window, on a device with one of 64 KiB."""
    path = private_disk / "file"
    attribute = device_of(path).attribute
    set_device(attribute, window_kb)
    drop(path)
    program = start(path)
    set_device(attribute, 64)
    watch = Watch(lambda: [program.pid], path.stat())
    program.tell(touches)
    watch.look()
    seen = watch.finish()
    assert seen.counted.major_faults > MISS_LIMIT
    return seen


def test_single_pages_are_seen(private_disk: Path, start: Callable[..., Toucher]) -> None:
    """Without a hint, the kernel reads them above its limit, which fast devices reach, or in a window of one page."""
    assert found(touched(private_disk, start, PAGE_BYTES >> 10)) is MissCounter.OVER_LIMIT


def test_small_windows_are_no_single_pages(private_disk: Path, start: Callable[..., Toucher]) -> None:
    assert found(touched(private_disk, start, 4 * PAGE_BYTES >> 10)) is not MissCounter.OVER_LIMIT


def test_a_scan_by_single_pages_is_not_well(private_disk: Path, start: Callable[..., Toucher]) -> None:
    verdict = judge(touched(private_disk, start, PAGE_BYTES >> 10, "scan"))
    assert verdict.kind is DiagnosisKind.READS_TOO_LITTLE, verdict.sentence

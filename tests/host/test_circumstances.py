# SPDX-License-Identifier: GPL-2.0-only
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost.circumstances import NOT_PROBED, Circumstances, circumstances
from foliohost.cli.main import main
from foliohost.errors import NoProbe
from foliohost.estimates import DiskCost
from foliohost.glimpse import glimpse
from foliohost.groups import Groups
from foliohost.places import LEAST_BYTES
from foliohost.processes import PAGE_BYTES
from foliohost.verdict import judge
from foliohost.watch import Watch
from tests.host.conftest import Toucher
from tests.host.seen import look_ups
from tests.host.toucher import drop


def around(path: str, probe: bool | None) -> Circumstances:
    """Of look-ups in a file that are badly read."""
    seen = look_ups()
    seen = replace(seen, files=(replace(seen.files[0], path=path),))
    return circumstances(seen, judge(seen), Groups([]), probe)


def test_the_disk_is_probed_where_something_is_wrong_unless_nobody_may(large_file: Path) -> None:
    drop(large_file)
    for probe, probed in ((None, True), (True, True), (False, False)):
        assert isinstance(around(str(large_file), probe).costs["sda"], DiskCost) == probed
    assert around(str(large_file), False).costs == {"sda": NOT_PROBED}
    # Nothing is wrong, so nobody reads.
    seen = look_ups()
    well = replace(seen, counted=replace(seen.counted, read_bytes=1 << 20))
    assert all(cost == NOT_PROBED for cost in circumstances(well, judge(well), Groups([]), None).costs.values())


def test_a_glimpse_of_a_disk(large_file: Path) -> None:
    cost = glimpse(large_file, 0.2)
    assert cost.request_us + cost.page_us > 1


class Clock:
    """Of a disk whose requests take 100 us, pages 8 us, waking 300 us, and each read up to ``noise_us`` more."""

    def __init__(self, noise_us: int) -> None:
        self._us, self._slept, self._noise_us, self._chance = 0, True, noise_us, random.Random(1)

    def sleep(self, seconds: float) -> None:
        self._us, self._slept = self._us + round(seconds * 1e6), True

    def monotonic(self) -> float:
        return self._us / 1e6

    def perf_counter_ns(self) -> int:
        return self._us * 1000

    def preadv(self, handle: int, buffers: Sequence[memoryview], place: int) -> int:
        size = sum(map(len, buffers))
        self._us += 100 + 8 * size // PAGE_BYTES + 300 * self._slept + self._chance.randint(0, self._noise_us)
        self._slept = False
        return size


@pytest.mark.parametrize(("noise_us", "idle_us"), [(0, 300), (20000, 0)])
def test_what_a_request_takes_after_a_pause(
    large_file: Path, monkeypatch: pytest.MonkeyPatch, noise_us: int, idle_us: int
) -> None:
    """It is told unless the disk's own times differ by so much that it may be chance."""
    clock = Clock(noise_us)
    monkeypatch.setattr("foliohost.glimpse.time", clock)
    monkeypatch.setattr(os, "preadv", clock.preadv)
    cost = glimpse(large_file, 0.5)
    assert cost.idle_us == idle_us
    if not noise_us:
        assert (cost.request_us, cost.page_us) == pytest.approx((100, 8))


def test_holes_are_not_taken_for_a_fast_disk(large_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = large_file.with_name("sparse")
    start, end = 100 << 20, 108 << 20
    with path.open("wb") as stream:
        stream.truncate(1 << 30)
        stream.seek(start)
        stream.write(b"x" * (end - start))
        os.fsync(stream.fileno())
    read = os.preadv
    places = []

    def noted(handle: int, buffers: Sequence[memoryview], place: int) -> int:
        places.append((place, place + sum(map(len, buffers))))
        return read(handle, buffers, place)

    monkeypatch.setattr(os, "preadv", noted)
    try:
        glimpse(path, 0.2)
        assert all(start <= first and last <= end for first, last in places)
        os.truncate(path, start)
        with pytest.raises(NoProbe, match=r"sparse is mostly holes\.$"):
            glimpse(path)
    finally:
        path.unlink()


def test_why_a_disk_cannot_be_probed(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(bytes(4096))
    with pytest.raises(NoProbe, match=f"is smaller than {LEAST_BYTES >> 20} MiB"):
        glimpse(small)
    with pytest.raises(NoProbe, match="cannot be read past the page cache"):
        glimpse(tmp_path / "absent")
    assert "absent" in str(around(str(tmp_path / "absent"), True).costs["sda"])


def test_a_cured_window_is_found(
    private_disk: Path, start: Callable[..., Toucher], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOLAB_STATE", str(tmp_path / "state"))
    path = private_disk / "file"
    program = start(path)
    watch = Watch(lambda: [program.pid], path.stat())
    seen = watch.finish()
    assert circumstances(seen, judge(seen), Groups([]), False).cured_kb == {}
    cure = ["cure", "apply", "--pid", str(program.pid), "--file", str(path), "--read-ahead-kb", "16"]
    assert main(cure) == 0
    found = circumstances(seen, judge(seen), Groups([]), False)
    assert found.cured_kb == {str(path): 16}
    assert found.window_kb(seen.files[0]) == 16
    program.end()
    assert circumstances(seen, judge(seen), Groups([]), False).cured_kb == {}

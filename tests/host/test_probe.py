# SPDX-License-Identifier: GPL-2.0-only
import ctypes
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliohost import probe
from foliohost.errors import NoProbe, UsageError
from foliohost.probe import DEEP_SIZES, DEEPEST, DEPTHS, SIZES, Probe, measure
from foliohost.processes import PAGE_BYTES
from tests.tmpfs import tmpfs


@pytest.fixture(scope="module")
def found(large_file: Path) -> Probe:
    return measure(large_file, 0.5, 1)


def test_all_sizes_and_depths_are_measured_in_each_round(found: Probe) -> None:
    rounds = len(found.times[SIZES[0]])
    assert rounds >= 4
    assert {pages: len(each) for pages, each in found.times.items()} == dict.fromkeys(SIZES, rounds)
    for times in found.deep_times.values():
        assert set(times) == set(DEEP_SIZES)
    for pages in DEEP_SIZES:
        assert len(found.deep_times[DEEPEST][pages]) == rounds
        assert sum(len(found.deep_times[depth][pages]) for depth in DEPTHS) == rounds


def test_what_was_read_came_from_the_disk(found: Probe) -> None:
    assert found.reads * PAGE_BYTES < found.read_bytes <= found.reads * PAGE_BYTES * SIZES[-1]
    assert found.reached_bytes is not None
    assert found.reached_bytes == pytest.approx(found.read_bytes, rel=0.05)
    assert found.first_us > 0
    assert found.again_us > 0


def test_the_figures_are_within_their_ranges(found: Probe) -> None:
    for cost in (found.cost, found.deep):
        for each in (cost.request_us, cost.page_us, cost.request_kb):
            assert 0 <= each.low <= each.value <= each.high


def test_the_file_and_the_window_are_left_as_they_are(large_file: Path) -> None:
    os.utime(large_file, (1e9, 1e9))
    before, device = large_file.stat(), probe._device(large_file)
    window, threads = device.read_ahead_kb, threading.active_count()
    measure(large_file, 0.1, 1)
    after = large_file.stat()
    assert (before.st_atime, before.st_mtime, before.st_ctime) == (after.st_atime, after.st_mtime, after.st_ctime)
    assert device.read_ahead_kb == window
    assert threading.active_count() == threads


def test_pages_of_a_buffer_are_scattered() -> None:
    buffer = probe.scattered(256)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    with Path("/proc/self/pagemap").open("rb") as pagemap:
        pagemap.seek(address // PAGE_BYTES * 8)
        frames = [entry & (1 << 55) - 1 for (entry,) in struct.iter_unpack("Q", pagemap.read(256 * 8))]
    if not any(frames):
        pytest.skip("only root sees where pages are")
    neighbours = sum(frames[place + 1] == frames[place] + 1 for place in range(255))
    assert neighbours < 32


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    with tmpfs(tmp_path / "memory", "size=80m") as place:
        (place / "file").write_bytes(bytes(65 << 20))
        yield place


def test_memory_is_no_disk(memory: Path) -> None:
    for path in (memory, memory / "file"):
        with pytest.raises(NoProbe, match=f"There is no disk under {path}: its file system is in memory"):
            measure(path, 1, 1)


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no "):
        measure(tmp_path / "absent", 1, 1)
    with pytest.raises(UsageError, match="/dev/null is neither a file nor a directory"):
        measure(Path("/dev/null"), 1, 1)


def test_a_read_that_fails_is_a_sentence() -> None:
    reading = object.__new__(probe._Reading)
    with pytest.raises(NoProbe, match=r"^A direct read failed: Bad file descriptor\.$"):
        reading._read(memoryview(bytearray(PAGE_BYTES)), (-1, 0), 1)


def test_a_file_that_is_cut_meanwhile(large_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the calls tell it: nothing is read behind the end."""
    copy = large_file.parent / "cut"
    with copy.open("wb") as stream:
        stream.write(os.urandom(1 << 20) * 66)
        os.fsync(stream.fileno())
    reading, threads = probe._Reading._several, threading.active_count()

    def cut(self: probe._Reading, depth: int, pages: int, seconds: float) -> float:
        os.truncate(copy, 0)
        return reading(self, depth, pages, seconds)

    monkeypatch.setattr(probe._Reading, "_several", cut)
    with pytest.raises(NoProbe, match="A file became shorter while it was read"):
        measure(copy, 0.5, 1)
    copy.unlink()
    assert threading.active_count() == threads

# SPDX-License-Identifier: GPL-2.0-only
"""Faults are followed on this machine, where its kernel lets us: root, and a tracefs that is mounted."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from foliohost import faults
from foliohost.devices import device_of
from foliohost.errors import FolioError
from foliohost.faults import FaultCounts, FaultTrace, FileFaults, faults_of, followed, with_idle
from foliohost.observation import Observation
from foliohost.processes import PAGE_BYTES, mappings
from foliohost.ringbuffer import Event, Layout, events
from foliohost.touches import ADD, FAULT, MAP
from foliohost.tracefs import Instance
from foliohost.verdict import judge
from foliohost.watch import Watch
from foliohost.windows import set_device
from tests.host import toucher
from tests.host.command import ARGV, host
from tests.host.conftest import Toucher
from tests.host.toucher import drop
from tests.host.tracing import here, instances
from tests.processes import wait_until

KEY = ("8:1", 5)


def seen_of(
    path: Path, start: Callable[..., Toucher], *commands: str, look: Callable[[Watch], None] = Watch.look
) -> Observation:
    """What ``look`` sees by tracepoints of a program with a file that is not cached."""
    drop(path)
    program = start(path)
    with followed([program.pid]) as trace:
        watch = Watch(lambda: [program.pid], path.stat(), trace=trace)
        for command in commands:
            program.tell(command)
        look(watch)
        return watch.finish()


@here
def test_what_faults_read_is_what_came_into_the_cache(private_disk: Path, start: Callable[..., Toucher]) -> None:
    """Nobody else reads this file: the cache tells what the tracepoints have to."""
    path = private_disk / "file"
    set_device(device_of(path).attribute, 64)
    seen = seen_of(path, start, "random 60")
    (file,) = seen.files
    assert file.fault_pages
    assert file.cached_pages
    # The rest of the last window may still be on its way.
    assert file.cached_pages <= file.fault_pages < file.cached_pages + 64 * 1024 // PAGE_BYTES
    assert file.major_faults
    assert file.major_faults <= seen.counted.major_faults  # its own text may be cold, too
    assert judge(seen).files[0].method == "tracepoints"
    assert seen.untraced == ""
    assert instances(os.getpid()) == []


@here
def test_what_a_call_reads_after_a_fault_is_not_the_faults(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    set_device(device_of(path).attribute, 64)
    (file,) = seen_of(path, start, "scan 1", "read").files
    half = path.stat().st_size // 2 // PAGE_BYTES
    assert file.cached_pages
    assert file.cached_pages > half
    assert file.fault_pages
    assert file.fault_pages < half / 2


@here
def test_what_was_read_before_the_first_look_does_not_count(private_disk: Path, start: Callable[..., Toucher]) -> None:
    """The trace has begun by then."""
    path = private_disk / "file"
    set_device(device_of(path).attribute, 64)
    drop(path)
    program = start(path)
    with followed([program.pid]) as trace:
        program.tell("random 60")
        watch = Watch(lambda: [program.pid], path.stat(), trace=trace)
        program.tell("page 1000")
        watch.look()
        (file,) = watch.finish().files
    assert file.major_faults == 1
    assert file.fault_pages
    assert file.fault_pages <= 64 * 1024 // PAGE_BYTES
    assert file.runs
    assert file.runs.blocks == 1


@here
def test_a_command_is_followed_from_its_start(large_file: Path) -> None:
    drop(large_file)
    script = f"(echo random 20; echo wait; echo wait) | {sys.executable} {toucher.__file__} {large_file}"
    found = json.loads(host("diagnose", "--json", "--", "sh", "-c", script).stdout)
    assert found["untraced"] is None
    file = next(file for file in found["files"] if file["path"] == str(large_file))
    assert file["read_method"] == "tracepoints"
    assert 0 < file["major_faults"] <= 20
    assert file["read_bytes"] == file["fault_pages"] * found["page_bytes"] >= file["major_faults"] * found["page_bytes"]
    assert sum(file["major_faults"] or 0 for file in found["files"]) <= found["major_faults"]


@here
def test_buffers_take_no_more_memory_than_is_said() -> None:
    most = max(faults.BUFFERS_KIB, 512 * (os.cpu_count() or 1))
    with followed([os.getpid()]):
        (ours,) = instances(os.getpid())
        words = (ours / "buffer_total_size_kb").read_text()
        assert 0 < int(words.split()[0]) < 1.01 * most  # whole pages


@here
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_us_nothing_is_left(number: int, start: Callable[..., Toucher], large_file: Path) -> None:
    program = start(large_file)
    argv = [*ARGV, "diagnose", "--pid", str(program.pid), "--seconds", "300"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert wait_until(lambda: any((each / "events" / FAULT / "enable").exists() for each in instances(running.pid)))
        running.send_signal(number)
        running.communicate(timeout=60)
    assert wait_until(lambda: not instances(running.pid))


def lossy(monkeypatch: pytest.MonkeyPatch, lost: int) -> None:
    """The kernel tells that it has lost so many events."""
    monkeypatch.setattr(Instance, "lost", lambda self: lost)


@here
def test_figures_with_few_events_lost_are_told_with_how_many(
    private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    lossy(monkeypatch, 1)
    seen = seen_of(private_disk / "file", start, "scan")
    assert seen.untraced == ""
    assert re.match(
        r"The kernel had no room for 1 of [\d,]+ events \(\d\.\d%\): reads and waits may be", seen.trace_doubt
    )
    assert judge(seen).files[0].method == "tracepoints"


@here
def test_many_events_lost_leave_estimates(
    private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    lossy(monkeypatch, 1_000_000)
    seen = seen_of(private_disk / "file", start, "scan")
    assert seen.untraced.startswith("The kernel had no room for 1,000,000 of 1,00")
    assert seen.untraced.endswith("%), too many to count by the others.")
    assert [(file.fault_pages, file.major_faults) for file in seen.files] == [(None, None)]
    assert judge(seen).files[0].method == "newly cached"


@pytest.fixture
def small_folios(tmp_path: Path) -> Path:
    """A file of 4 MiB in memory whose folios are single pages: since 6.18 a fault maps all of its folio."""
    path = tmp_path / "small"
    with path.open("wb") as stream:
        for page in reversed(range(1024)):
            os.pwrite(stream.fileno(), bytes(PAGE_BYTES), page * PAGE_BYTES)
    return path


@here
def test_what_the_kernel_has_no_room_for_is_noticed(small_folios: Path, start: Callable[..., Toucher]) -> None:
    """Nobody looks while the buffers fill."""
    program = start(small_folios)
    with followed([program.pid]) as trace:
        program.tell("again 8000")
        traced = faults_of(trace, [])
    assert re.match(r"The kernel had no room for [\d,]+ of [\d,]+ events", traced.untraced)


@here
def test_more_events_than_the_buffers_hold_are_counted(small_folios: Path, start: Callable[..., Toucher]) -> None:
    """While we look at something else."""
    program = start(small_folios)
    with followed([program.pid]) as trace:
        trace.begin()
        for _ in range(40):
            program.tell("again 200")
            time.sleep(0.01)
        traced = faults_of(trace, [])
        assert trace._counts.events >= 40 * 200 * 64
    assert (traced.untraced, traced.doubt) == ("", "")


LAYOUTS = {
    FAULT: Layout(7, struct.Struct("=4xIIIQ"), (0, 1, 2, 3)),
    ADD: Layout(8, struct.Struct("=4xIIIQI"), (0, 1, 2, 3, 4)),
}


def page_of(events: Sequence[Event]) -> bytes:
    """A page of the kernel's with these events."""
    body, last = b"", events[0][0]
    for moment, name, fields in events:
        content = struct.pack("=HH", LAYOUTS[name].id, 0) + LAYOUTS[name].code.pack(*fields)[4:]
        body += struct.pack("=I", moment - last << 5 | len(content) // 4) + content
        last = moment
    return struct.pack("@QL", events[0][0], len(body)) + body


class Buffers(Instance):
    """What processors have in their buffers, where no kernel is."""

    def __init__(self, processors: int) -> None:
        self.waiting: list[list[bytes]] = [[] for _ in range(processors)]
        self.buffer_bytes = 512 << 10
        self.fetched = 0

    def fetch(self) -> list[Iterator[bytes]]:
        self.fetched += 1
        fetched, self.waiting = self.waiting, [[] for _ in self.waiting]
        return list(map(iter, fetched))

    def parsed(self, page: bytes) -> Iterator[Event]:
        return events(page, LAYOUTS)

    def stop(self) -> None:
        pass

    def lost(self) -> int:
        return 0


def test_few_events_are_in_memory_however_many_are_fetched() -> None:
    """A task goes from processor to processor: only the order of times tells what was read for which fault."""
    processors, pages, each = 8, 100, 40
    buffers, counts = Buffers(processors), FaultCounts()
    told: list[list[Event]] = [[] for _ in range(processors)]
    for number in range(processors * pages * each // 2):
        file, page, moment = (7, number % 5), number, 10 * number
        told[number * 7 % processors].append((moment, FAULT, (1, *file, page)))
        told[number * 3 % processors].append((moment + 5, ADD, (1, *file, page - page % 4, 2)))
    counts.take(sorted(event for some in told for event in some))
    buffers.waiting = [[page_of(some[at : at + each]) for at in range(0, len(some), each)] for some in told]
    trace = FaultTrace(buffers)
    most = 0

    def parsed(page: bytes) -> Iterator[Event]:
        nonlocal most
        most = max(most, len(trace._early))
        return events(page, LAYOUTS)

    buffers.parsed = parsed  # type: ignore[method-assign]
    trace.drain()
    found, doubt = trace.faults()
    assert (found, doubt) == (counts.by_file(), "")
    assert counts.events == trace._counts.events == processors * pages * each
    assert most < 3 * 4096 + 2 * processors * each


def test_each_file_is_counted_from_a_time_of_its_own() -> None:
    buffers = Buffers(1)
    trace = FaultTrace(buffers)
    before = time.monotonic_ns()
    trace.begin_with(("0:7", 5))
    after = time.monotonic_ns() + 1
    trace._beginnings.append((after + 1, (7, 5)))  # somebody else looks at it as well
    reads = [(FAULT, (1, 7, 5, 3)), (ADD, (1, 7, 5, 3, 2)), (FAULT, (1, 7, 6, 3)), (ADD, (1, 7, 6, 3, 2))]
    told = [(moment, *read) for moment in (before - 1, after, after + 1) for read in reads]
    buffers.waiting = [[page_of(told)]]
    found, _ = trace.faults()
    assert {file: (faults.read_pages, faults.major_faults) for file, faults in found.items()} == {
        ("0:7", 5): (8, 2),
        ("0:7", 6): (12, 3),
    }


def test_events_are_fetched_while_a_look_takes_long() -> None:
    buffers = Buffers(1)
    trace = FaultTrace(buffers)
    Watch(list, trace=trace)
    ours = trace._thread.native_id or 0
    buffers.waiting = [[page_of([(1, FAULT, (1, 8, 5, 3)), (2, FAULT, (ours, 8, 6, 3))])]]
    assert wait_until(lambda: trace._counts.events == 2, 60)
    assert trace._counts.by_file().keys() == {("0:8", 5)}
    trace.end()
    fetched = buffers.fetched
    time.sleep(0.3)
    assert buffers.fetched == fetched


def test_reads_are_of_the_fault_that_waits_for_them() -> None:
    file, other = (7, 5), (7, 6)

    def fault(task: int, number: tuple[int, int], page: int) -> Event:
        return 0, FAULT, (task, *number, page)

    def add(task: int, number: tuple[int, int], first: int, order: int = 0) -> Event:
        return 0, ADD, (task, *number, first, order)

    counts = FaultCounts(but=[9])
    counts.take([fault(1, file, 5), add(1, file, 4), add(1, file, 5, 1), add(1, other, 5), add(2, file, 8)])
    counts.take([(0, MAP, (1, *file, 0, 15)), add(1, file, 8)])  # by read(), after the fault
    counts.take([fault(2, file, 9), fault(1, other, 1), add(2, file, 9), fault(2, file, 9), add(2, file, 10)])
    counts.take([fault(9, file, 20), add(9, file, 20)])
    found = {file: (faults.read_pages, faults.major_faults) for file, faults in counts.by_file().items()}
    assert found == {("0:7", 5): (4, 2), ("0:7", 6): (0, 0)}
    assert counts.events == 14


def test_runs_are_of_files_that_faults_have_missed_pages_of() -> None:
    counts = FaultCounts(but=[9])
    counts.take([(0, MAP, (1, 7, 6, 0, 15)), (0, FAULT, (1, 7, 5, 20)), (0, MAP, (1, 7, 5, 32, 47))])
    counts.take([(0, MAP, (9, 7, 5, 48, 63)), (0, FAULT, (9, 7, 5, 64))])
    (faults,) = counts.by_file().values()
    assert faults.runs
    assert (faults.runs.number, faults.runs.blocks) == (1, 2)


def test_a_file_without_events_had_no_faults_unless_events_have_other_numbers() -> None:
    """As those of an overlay have, in whose container a disk is mounted as well. Those of btrfs have the same ones."""
    volume, layer, overlay, btrfs = ("8:2", 5), ("8:2", 6), ("0:60", 6), ("0:31", 7)
    idle, read = FileFaults(), FileFaults(32, 1)
    assert with_idle({}, [volume, overlay]) == {volume: idle, overlay: idle}
    assert with_idle({layer: read}, [volume, overlay]) == {layer: read, volume: idle}
    assert with_idle({layer: idle}, [overlay])[overlay] == idle
    assert with_idle({volume: read}, [volume, overlay]) == {volume: read, overlay: idle}
    other = (btrfs[0], 8)
    assert with_idle({other: read}, [btrfs, overlay]) == {other: read, btrfs: idle}


@here
@pytest.mark.parametrize("kind", ["overlay", "disk"])
def test_of_a_real_file_that_nobody_read_while_another_was(
    kind: str, private_disk: Path, tmp_path: Path, start: Callable[..., Toucher]
) -> None:
    """On an overlay, a file that was read is not taken to be idle."""
    path, place = private_disk / "file", private_disk
    if kind == "overlay":
        place = tmp_path / "merged"
        options = f"lowerdir={private_disk},upperdir={tmp_path}/upper,workdir={tmp_path}/work"
        for directory in (place, tmp_path / "upper", tmp_path / "work"):
            directory.mkdir()
        argv = ["mount", "-t", "overlay", "overlay", "-o", options, str(place)]
        if subprocess.run(argv, capture_output=True, check=False).returncode:
            pytest.skip("there are no overlays here")
    try:
        drop(path)
        program = start(place / "file")
        with followed([program.pid]) as trace:
            trace.begin()
            program.tell("random 20")
            keys = {(*piece.file, 0) for piece in mappings(program.pid) if piece.path == str(place / "file")}
            assert keys
            own = ("8:1", 1 << 40, 0)
            found = faults_of(trace, [own, *keys]).files
        assert found[own] == FileFaults()
        assert all(key not in found or found[key].read_pages for key in keys)
        assert kind == "overlay" or keys <= found.keys()
        program.end()
    finally:
        if kind == "overlay":
            subprocess.run(["umount", "--lazy", str(place)], check=False)


def test_who_may_not_is_told_so(nobody: None) -> None:
    with pytest.raises(FolioError, match=r"root\.$"), followed([os.getpid()]):
        pass


@here
def test_a_kernel_without_the_event(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(faults, "tracefs", lambda: tmp_path)
    words = r"^This kernel has no tracepoint mm_filemap_fault; Linux since 6\.11 has\.$"
    with pytest.raises(FolioError, match=words), followed([os.getpid()]):
        pass

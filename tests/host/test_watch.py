# SPDX-License-Identifier: GPL-2.0-only
"""Real programs on a real disk."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from foliohost import pages, residency
from foliohost import watch as module
from foliohost.bits import count_ones
from foliohost.circumstances import Circumstances
from foliohost.devices import device_of
from foliohost.estimates import touched
from foliohost.observation import FileSeen, Observation
from foliohost.processes import PAGE_BYTES, counters
from foliohost.remedies import remedies
from foliohost.shares import FileShare
from foliohost.verdict import Diagnosis, DiagnosisKind, judge
from foliohost.watch import Watch
from foliohost.windows import set_device
from tests.host.conftest import PAGES, Toucher
from tests.host.toucher import drop


def watched(
    start: Callable[..., Toucher], path: Path, touches: str
) -> tuple[Toucher, Observation, Diagnosis, FileShare]:
    """What a program does to a cold file."""
    drop(path)
    program = start(path)
    watch = Watch(lambda: [program.pid])
    program.tell(touches)
    watch.look()
    seen = watch.finish()
    verdict = judge(seen)
    (file,) = [each for each in verdict.files if each.seen.path == str(path)]
    return program, seen, verdict, file


def test_random_touches_of_a_cold_file(large_file: Path, start: Callable[..., Toucher]) -> None:
    program, seen, verdict, file = watched(start, large_file, "random 28")
    assert verdict.kind is DiagnosisKind.READS_TOO_MUCH, verdict.sentence
    assert file is verdict.files[0]
    assert 16 <= seen.counted.major_faults <= 160
    assert 0 < file.used_least <= 29 * PAGE_BYTES
    assert file.read_bytes
    assert file.read_bytes <= large_file.stat().st_size
    assert file.read_bytes >= 10 * file.used_least
    assert file.seen.open_in == (program.pid,)


def test_a_scan_is_well(large_file: Path, start: Callable[..., Toucher]) -> None:
    _, seen, verdict, file = watched(start, large_file, "scan")
    assert verdict.kind is DiagnosisKind.NOTHING_WRONG, verdict.sentence
    assert file.used_most == pytest.approx(large_file.stat().st_size, rel=0.1)  # where memory is short, some goes again
    assert file.seen.places == -(-file.seen.mapped_pages // pages.AROUND_PAGES)
    assert seen.machine_read_bytes >= seen.counted.read_bytes > file.used_most / 2


def test_one_file_and_a_process_that_ends(large_file: Path, start: Callable[..., Toucher]) -> None:
    program = start(large_file)
    watch = Watch(lambda: [program.pid], large_file.stat())
    program.tell("random 20")
    watch.look()
    program.end()
    watch.look()
    (file,) = watch.finish().files
    assert (file.path, file.alive, file.open_in) == (str(large_file), False, ())
    assert not file.come_and_gone
    assert file.mapped_pages >= 20 * 0.9


def test_what_was_touched_before_a_first_look_is_not_new_however_late_that_is(
    cold: Path, large_file: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look has time for one file, the larger ones first."""
    programs = [start(path) for path in (large_file, cold)]
    for program in programs:
        program.tell("random 60")
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0)
    watch = Watch(lambda: [program.pid for program in programs])

    def seen() -> dict[str, FileSeen]:
        return {file.path: file for file in watch.finish().files}

    assert str(large_file) in seen()
    while str(cold) not in seen():
        watch.look()
    found = [seen()[str(path)] for path in (large_file, cold)]
    assert all((file.mapped_pages, file.places, file.cached_pages, file.read_before) == (0, 0, 0, 0) for file in found)
    monkeypatch.undo()
    programs[1].tell("scan")
    watch.look()
    assert 0 < seen()[str(cold)].mapped_pages < PAGES - 60 * 0.9


def test_nothing_is_read_of_a_file(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    set_device(device_of(path).attribute, 64)
    _, seen, _, file = watched(start, path, "page 1000")
    there = residency.cached(path)
    assert there
    assert count_ones(there) * PAGE_BYTES == file.read_bytes == 64 << 10
    assert seen.files[0].engine == ""


def test_what_a_process_maps_later_is_new(cold: Path, start: Callable[..., Toucher]) -> None:
    pids: list[int] = []
    watch = Watch(lambda: pids, cold.stat())
    program = start(cold)
    program.tell("scan")
    pids.append(program.pid)
    watch.look()
    (file,) = watch.finish().files
    assert file.mapped_pages == PAGES


def test_what_is_read_during_the_first_look_does_not_count(large_file: Path, start: Callable[..., Toucher]) -> None:
    """Its pages are taken to have been there before."""
    drop(large_file)
    program = start(large_file)
    reads = ["random 30", "random 30"]

    def pids() -> list[int]:
        if reads:
            program.tell(reads.pop())
            time.sleep(0.3)
        return [program.pid]

    watch = Watch(pids, large_file.stat())
    began = time.monotonic()
    reads.clear()
    watch.look()
    seen = watch.finish()
    assert (seen.counted.read_bytes, seen.counted.major_faults) == (0, 0)
    assert seen.before.major_faults > 0
    assert seen.seconds < time.monotonic() - began + 0.2
    drop(large_file)
    program.tell("random 60")
    watch.look()
    assert watch.finish().counted.major_faults > 0


@pytest.mark.parametrize("fate", ["emptied", "replaced", "moved", "deleted"])
def test_a_file_that_is_no_more_what_it_was(fate: str, private_disk: Path, start: Callable[..., Toucher]) -> None:
    """Whose size it was when it was mapped counts; the file that has its path now is another one."""
    path = private_disk / "file"
    set_device(device_of(path).attribute, 64)
    size = path.stat().st_size
    drop(path)
    program = start(path)
    watch = Watch(lambda: [program.pid], path.stat())
    program.tell("random 60")
    watch.look()
    if fate == "emptied":
        os.truncate(path, 0)
    elif fate == "deleted":
        path.unlink()
    else:
        if fate == "moved":
            path.rename(private_disk / "old")
        (private_disk / "new").write_bytes(bytes(2 * size))
        (private_disk / "new").replace(path)
    watch.look()
    seen = watch.finish()
    (file,) = seen.files
    assert file.size_bytes == size
    if fate != "emptied":
        assert file.open_in == ()
        assert (file.resident_bytes is None) == (fate == "moved")
    verdict = judge(seen)
    for each in verdict.files:
        remedies(seen, verdict, each, Circumstances())


def test_pages_that_stand_for_more_at_a_later_look_make_no_file_larger(
    large_file: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = start(large_file)
    watch = Watch(lambda: [program.pid], large_file.stat())
    program.tell("scan")
    watch.look()
    monkeypatch.setattr(pages, "one_in", lambda pid, pieces: 4)
    watch.look()
    (file,) = watch.finish().files
    assert (file.one_in, file.size_bytes) == (4, large_file.stat().st_size)


def test_the_end_is_noticed_between_two_looks_that_are_long() -> None:
    """The next one would come after ten times as long."""

    def slow() -> list[int]:
        time.sleep(0.5)
        return []

    watch = Watch(slow)
    began = time.monotonic()
    watch.run(None, lambda: time.monotonic() > began + 1)
    assert time.monotonic() - began < 4


def test_processes_that_have_ended_are_counted(large_file: Path, start: Callable[..., Toucher]) -> None:
    """Each had an open file with a counter of its own."""
    pids: list[int] = []
    watch = Watch(lambda: pids, large_file.stat())
    for _ in range(3):
        program = start(large_file)
        pids.append(program.pid)
        watch.look()
        program.end()
    watch.look()
    (file,) = watch.finish().files
    assert list(file.processes) == pids
    assert file.come_and_gone


def test_what_a_process_has_read_stays_when_it_ends(large_file: Path, start: Callable[..., Toucher]) -> None:
    drop(large_file)
    reader, other = start(large_file), start(large_file)
    watch = Watch(lambda: [reader.pid, other.pid], large_file.stat())
    reader.tell("random 50")
    watch.look()
    reader.end()
    watch.look()
    seen = watch.finish()
    assert seen.counted.major_faults >= 10
    assert seen.counted.read_bytes >= 10 * PAGE_BYTES


def test_what_a_child_has_read_is_counted_once(large_file: Path, start: Callable[..., Toucher]) -> None:
    """Its parent has it in its own counters as soon as it has waited for it."""
    drop(large_file)
    program = start(large_file)
    watch = Watch(lambda: [os.getpid(), program.pid], large_file.stat())
    before = counters(program.pid).major_faults
    program.tell("random 50")
    watch.look()
    alive = counters(program.pid).major_faults - before
    program.end()
    watch.look()
    assert 10 <= alive <= watch.finish().counted.major_faults < 2 * alive


def test_the_hint_is_seen(large_file: Path, start: Callable[..., Toucher]) -> None:
    program = start(large_file, "hint")
    (file,) = Watch(lambda: [program.pid], large_file.stat()).finish().files
    assert file.hint == "random"
    assert not file.text


def test_a_small_file_is_cached_as_a_whole(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    set_device(device_of(path).attribute, 64)
    _, seen, verdict, file = watched(start, path, "random 2000")
    assert verdict.kind is DiagnosisKind.FITS, verdict.sentence
    assert remedies(seen, verdict, file, Circumstances()) == []


def test_processes_with_one_file_are_cured_together(large_file: Path, start: Callable[..., Toucher]) -> None:
    drop(large_file)
    programs = [start(large_file) for _ in range(3)]
    pids = [program.pid for program in programs]
    watch = Watch(lambda: pids, large_file.stat())
    for program in programs:
        program.tell("random 28" if program is programs[-1] else "random 2")
    watch.look()
    seen = watch.finish()
    verdict = judge(seen)
    assert verdict.files[0].seen.open_in == tuple(pids)
    found = remedies(seen, verdict, verdict.files[0], Circumstances())
    assert [remedy.command for remedy in found if " --file " in remedy.command] == [
        f"sudo foliolab-host cure apply --file {large_file} --read-ahead-kb 16"
    ], verdict.sentence


def test_what_a_smaller_window_would_do_is_predicted(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    attribute = device_of(path).attribute
    set_device(attribute, 64)
    program, now, _, file = watched(start, path, "random 100")
    predicted = touched(file, (64 << 10) // PAGE_BYTES, now.counted.major_faults).load((16 << 10) // PAGE_BYTES)
    program.end()
    set_device(attribute, 16)
    _, then, _, file = watched(start, path, "random 100")
    assert file.read_bytes
    assert predicted.pages * PAGE_BYTES == pytest.approx(file.read_bytes, rel=0.15)
    assert predicted.waits == pytest.approx(then.counted.major_faults, rel=0.25)
    assert then.counted.major_faults > now.counted.major_faults

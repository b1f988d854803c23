# SPDX-License-Identifier: GPL-2.0-only
"""Recording on this machine, where its kernel lets us: root, and a tracefs that is mounted."""

import errno
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from foliohost.cli import record as record_command
from foliohost.cli.main import main
from foliohost.errors import DiskFull, FolioError
from foliohost.fault_around import FAULT_AROUND, fault_around_bytes
from foliohost.processes import PAGE_BYTES
from foliohost.record import LIMIT_BYTES, record
from foliohost.spool import Spool
from foliohost.target import LiveTarget, Process, StartedProgram
from foliohost.trace import read_trace
from tests.host.command import ARGV
from tests.host.conftest import PAGES
from tests.host.tracing import here, instances
from tests.processes import called, wait_until

TOUCH = """
import mmap, sys, time
with open(sys.argv[1], "rb") as stream:
    mapped = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)
    for page in map(int, sys.argv[2].split(",")):
        mapped[page * mmap.PAGESIZE]
    print("touched", flush=True)
    time.sleep(float(sys.argv[3]))
sys.exit(7)
"""


def touching(path: Path, pages: list[int], seconds: float = 0) -> list[str]:
    return [sys.executable, "-c", TOUCH, str(path), ",".join(map(str, pages)), str(seconds)]


@here
def test_touches_of_a_program_are_in_the_trace(cold: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pages = [page * 37 % PAGES for page in range(1, 50)]
    out, reads = tmp_path / "t", tmp_path / "r"
    words = ["-o", str(out), "--reads", str(reads), "--file", f"{tmp_path}/c*"]
    assert main(["record", *words, "--", *touching(cold, pages)]) == 7
    said = capfd.readouterr()
    assert said.out == "touched\n"
    assert "Not seen: touches of pages that are mapped already." in said.err
    trace = read_trace(out)
    assert [(file.name, file.pages) for file in trace.files] == [(str(cold), PAGES)]
    assert trace.page_of[0] == pages[0]
    rest = iter(pages)
    assert all(page in rest for page in trace.page_of)
    assert set(trace.page_of) <= set(read_trace(reads).page_of)
    (measured,) = trace.measured
    assert measured.read_bytes == read_trace(reads).touches * 4096
    assert 1 <= measured.major_faults <= trace.touches
    assert instances(os.getpid()) == []


@here
def test_without_reads_there_are_no_events_of_pages_read(
    cold: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "t"
    pages = [page * 37 % PAGES for page in range(1, 50)]
    words = ["-o", str(out), "--file", str(cold), "--", *touching(cold, pages)]
    assert main(["record", *words]) == 7
    trace = read_trace(out)
    assert trace.page_of[0] == pages[0]
    assert set(trace.page_of) <= set(pages)
    assert trace.measured == ()
    assert "--reads does that" in capfd.readouterr().err


@here
def test_pages_that_were_read_have_a_limit_as_well(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folios of many pages are few events."""
    monkeypatch.setattr("foliohost.record._READ_PAGE_BYTES", LIMIT_BYTES // 100)
    program = StartedProgram(touching(cold, list(range(0, PAGES, 16))))
    found = record(program, patterns=[str(cold)], reads=True)
    assert found.reads
    assert found.full
    assert 100 <= found.reads.touches < PAGES
    assert 0 < found.trace.touches < PAGES // 16
    assert len(found.reads.other["times_ms"]) == min(found.reads.touches, 256)
    assert program.status() == 7


WRITE = """
import mmap, os, sys
handle = os.open(sys.argv[1], os.O_RDWR)
mapped = mmap.mmap(handle, 0, prot=mmap.PROT_READ)
mapped[5 * mmap.PAGESIZE]
mapped[6 * mmap.PAGESIZE]
end = len(mapped) // mmap.PAGESIZE
for page in range(end, end + 100):
    os.pwrite(handle, bytes(mmap.PAGESIZE), page * mmap.PAGESIZE)
"""


@here
def test_pages_that_write_has_added_are_not_read(cold: Path) -> None:
    found = record(StartedProgram([sys.executable, "-c", WRITE, str(cold)]), patterns=[str(cold)], reads=True)
    assert found.reads
    assert 5 in found.reads.page_of
    assert max(found.reads.page_of) < PAGES


@here
def test_another_process_is_recorded_until_it_ends_or_the_time_is_over(cold: Path) -> None:
    wanted = {"patterns": [str(cold)]}
    program = StartedProgram(touching(cold, [5], 0.3))
    program.begin()
    assert record(Process(program.process), **wanted).full is False  # type: ignore[arg-type]
    sleeping = StartedProgram(["sleep", "300"])
    sleeping.begin()
    start = time.monotonic()
    assert record(Process(sleeping.process), seconds=0.2).trace.other["live"]["seconds"] >= 0.2
    assert time.monotonic() - start < 100
    sleeping.end()
    assert sleeping.status() == 128 + signal.SIGTERM
    with pytest.raises(FolioError, match=r"^There is no process \d+\.$"):
        Process(program.process + (1 << 22))


@here
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_us_nothing_is_left(number: int, cold: Path, tmp_path: Path) -> None:
    out = tmp_path / "t"
    argv = [*ARGV, "record", "-o", str(out), "--file", str(cold), "--"]
    running = subprocess.Popen(
        [*argv, *touching(cold, [1, 400], 300)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert running.stdout
    assert running.stdout.readline() == b"touched\n"
    assert len(instances(running.pid)) == 1
    # Ctrl-C is for all in the foreground.
    (os.killpg if number == signal.SIGINT else os.kill)(running.pid, number)
    running.communicate(timeout=60)
    assert wait_until(lambda: not instances(running.pid))
    if number == signal.SIGKILL:
        assert not out.exists()
    else:
        assert list(read_trace(out).page_of) == [1, 400]
        assert running.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir() if path.name != "t"] == ["cold"]


@here
def test_what_the_buffer_has_no_room_for_is_counted(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliohost.tracefs._MOST_KIB", 8)
    monkeypatch.setattr("foliohost.record._DRAIN_SECONDS", 1)
    trace = record(StartedProgram(touching(cold, list(range(0, PAGES, 3)))), patterns=[str(cold)]).trace
    assert trace.lost > 0


@here
@pytest.mark.skipif(not fault_around_bytes(), reason="debugfs is not mounted, or locked down")
def test_fine(cold: Path) -> None:
    before, pages = FAULT_AROUND.read_text(), [5, 6, 7, 900, 5, 8]
    trace = record(StartedProgram(touching(cold, pages)), patterns=[str(cold)], fine=True).trace
    assert list(trace.page_of) == [5, 6, 7, 900, 8]
    assert trace.measured == ()
    assert FAULT_AROUND.read_text() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Name a program, or a process by --pid."),
        (["--pid", "1", "true"], "Name a program, or a process by --pid."),
        (["--seconds", "inf", "true"], "--seconds is a time of more than nothing and less than 1,000,000."),
        (["--limit", "x", "true"], "'x' is not a size such as 512M or 20G."),
        (["--reads", "/nowhere/r", "true"], "--reads: /nowhere is no directory."),
        (["/nowhere/program"], "There is no program /nowhere/program."),
        (["--pid", str(1 << 23)], f"There is no process {1 << 23}."),
    ],
)
def test_what_makes_no_sense(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", "-o", str(tmp_path / "t"), *words]) == 2
    assert capsys.readouterr().err == f"foliolab-host: {sentence}\n"


def test_a_program_that_is_asked_to_end_before_it_has_begun_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long we take between two signals."""
    send = subprocess.Popen.send_signal

    def send_and_wait(child: subprocess.Popen[bytes], number: int) -> None:
        send(child, number)
        time.sleep(0.2)

    monkeypatch.setattr(subprocess.Popen, "send_signal", send_and_wait)
    program = StartedProgram(["touch", str(tmp_path / "touched")])
    program.end()
    assert program.status() == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


SMALL = """
place=$1
shift
mount -t tmpfs -o size=32k tmpfs "$place"
"$@"
"""
OUTLAST = 'sleep 1.5; touch "$1"; exit 7'


def with_small_disk(place: Path, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What comes of a command while there is a file system of 32 KiB at a place."""
    place.mkdir()
    return called("unshare", "--mount", "sh", "-ec", SMALL, "sh", str(place), *argv, seconds=300, **environment)


@here
def test_events_that_the_disk_has_no_room_for_are_cut_off(cold: Path, tmp_path: Path) -> None:
    room, ended, out = (tmp_path / name for name in ("room", "ended", "t"))
    touches = touching(cold, list(range(0, PAGES, 2)))
    script = f"{shlex.join(touches)}; {OUTLAST}"
    argv = [*ARGV, "record", "-o", str(out), "--file", str(cold), "--", "sh", "-c", script, "sh", str(ended)]
    done = with_small_disk(room, *argv, TMPDIR=str(room))
    assert f"The recording is cut off. No space left on the disk that holds {room}.\n" in done.stderr
    assert done.returncode == 7
    assert ended.exists()
    assert len(read_trace(out).page_of) < PAGES / 2


@here
def test_a_trace_that_the_disk_has_no_room_for_does_not_end_the_program(tmp_path: Path) -> None:
    room, ended = tmp_path / "room", tmp_path / "ended"
    argv = [*ARGV, "record", "-o", str(room / "t"), "--seconds", "0.2", "--", "sh", "-c", OUTLAST, "sh", str(ended)]
    fill = 'head -c 99999 /dev/zero >"$1/zeros" || shift; exec "$@"'
    done = with_small_disk(room, "sh", "-c", fill, "sh", str(room), *argv)
    assert done.returncode == DiskFull.status, done.stderr
    assert done.stderr.endswith(f"foliolab-host: No space left on the disk that holds {room}.\n")
    assert ended.exists()


def test_what_has_begun_is_left_to_its_end_and_nothing_else_begins(tmp_path: Path) -> None:
    begun, waiting = (StartedProgram(["touch", str(tmp_path / name)]) for name in ("begun", "waiting"))
    begun.begin()
    for program in (begun, waiting):
        program.leave()
    assert [path.name for path in tmp_path.iterdir()] == ["begun"]
    assert (begun.status(), waiting.status()) == (0, 128 + signal.SIGTERM)


def test_what_has_failed_is_told_also_if_somebody_ends_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By Ctrl-C, once we wait for its end."""
    programs: list[LiveTarget] = []

    def fail(target: LiveTarget, *words: object) -> None:
        target.begin()
        programs.append(target)
        raise DiskFull("No space left.")

    wait, interrupts = subprocess.Popen.wait, [KeyboardInterrupt]

    def interrupted(child: subprocess.Popen[bytes]) -> int:
        if interrupts:
            raise interrupts.pop()
        return wait(child)

    monkeypatch.setattr(record_command, "_record", fail)
    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    assert main(["record", "-o", str(tmp_path / "t"), "--", "sleep", "300"]) == DiskFull.status
    assert capsys.readouterr().err == "foliolab-host: No space left.\n"
    assert programs[0].status() == 128 + signal.SIGTERM


@pytest.mark.parametrize("part", [0, 8], ids=["none", "some"])
def test_a_full_disk_is_named_and_what_is_there_stays(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write, spool = os.pwrite, Spool()

    def full(handle: int, data: bytes, offset: int) -> int:
        if not part:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data[:part], offset)

    spool.add([[bytes(PAGE_BYTES)]])
    before = spool.size
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        spool.add([[bytes(PAGE_BYTES)]])
    spool.add([[bytes(PAGE_BYTES)]])
    assert spool.full_disk == f"No space left on the disk that holds {tempfile.gettempdir()}."
    assert (spool.size, list(spool._places[0])) == (before, [0])

# SPDX-License-Identifier: GPL-2.0-only
"""Recording on this machine, where its kernel lets us: root, and a tracefs that is mounted."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from foliolab.cli.main import main
from foliolab.errors import LabError, MissingTool, UsageError
from foliolab.live import tracefs as live_tracefs
from foliolab.live.processes import tasks_of
from foliolab.live.record import record
from foliolab.live.target import Process, StartedProgram
from foliolab.live.touches import ADD, FIELDS, MAP, USER
from foliolab.live.tracefs import FAULT_AROUND, Instance, fault_around_bytes, tracefs
from foliolab.trace.format import read_trace
from tests.live.conftest import Toucher
from tests.processes import wait_until

PAGES = 2048


def obstacle() -> str:
    """Why nothing can be recorded here. tracefs is mounted as most machines have it from their start, and stays so."""
    if not os.geteuid() and not Path("/sys/kernel/tracing/instances").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], capture_output=True, check=False)
    try:
        tracefs()
    except LabError as error:
        return str(error)
    return ""


here = pytest.mark.skipif(bool(obstacle()), reason=obstacle())

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


def instances(process: int) -> list[str]:
    """Those of one of us; other tests have theirs at the same time."""
    there = [path.name for path in (tracefs() / "instances").glob("foliolab-live-*")]
    return [name for name in there if name.split("-")[2] == str(process)]


def touching(path: Path, pages: list[int], seconds: float = 0) -> list[str]:
    return [sys.executable, "-c", TOUCH, str(path), ",".join(map(str, pages)), str(seconds)]


@pytest.fixture
def cold(tmp_path: Path) -> Path:
    """A file of which nothing is in memory."""
    path = tmp_path / "cold"
    path.write_bytes(random.Random(1).randbytes(PAGES * 4096))
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


@here
def test_touches_of_a_program_are_in_the_trace(cold: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pages = [page * 37 % PAGES for page in range(1, 50)]
    out, reads = tmp_path / "t", tmp_path / "r"
    words = ["-o", str(out), "--reads", str(reads), "--file", f"{tmp_path}/c*"]
    assert main(["trace", "record", "--live", *words, "--", *touching(cold, pages)]) == 7
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
    assert main(["trace", "record", "--live", *words]) == 7
    trace = read_trace(out)
    assert trace.page_of[0] == pages[0]
    assert set(trace.page_of) <= set(pages)
    assert trace.measured == ()
    assert "--reads does that" in capfd.readouterr().err


@here
def test_without_a_compiler_there_is_a_trace_and_no_comparison(
    cold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def missing(_: object) -> None:
        raise MissingTool("cc is not installed.")

    monkeypatch.setattr("foliolab.cli.trace_live.compiled", missing)
    out, words = tmp_path / "t", ["--reads", str(tmp_path / "r"), "--file", str(cold), "--", *touching(cold, [1, 400])]
    assert main(["trace", "record", "--live", "-o", str(out), *words]) == 7
    assert "cc is not installed." in capfd.readouterr().err
    assert list(read_trace(out).page_of) == [1, 400]


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


TAKE_TURNS = """
import mmap, os, sys
own, other = map(int, sys.argv[2:4])
os.sched_setaffinity(0, {int(sys.argv[4])})
with open(sys.argv[1], "rb") as stream:
    print(flush=True)
    while os.read(own, 1):
        with mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            mapped[0]
        os.write(other, b"x")
"""


@here
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_a_limit_cuts_all_processors_at_the_same_time(cold: Path) -> None:
    cold.read_bytes()
    ends = [os.pipe(), os.pipe()]
    processors = sorted(os.sched_getaffinity(0))[:2]
    fields = {USER: FIELDS[USER], MAP: FIELDS[MAP]}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE_TURNS, str(cold), str(ends[me][0]), str(ends[1 - me][1]), str(processors[me])],
            pass_fds=[ends[me][0], ends[1 - me][1]],
            stdout=subprocess.PIPE,
        )
        for me in (0, 1)
    ]
    try:
        for child in children:
            assert child.stdout and child.stdout.read(1)
        with Instance(fields, 64 << 10) as instance:
            instance.start([child.pid for child in children])
            os.write(ends[0][1], b"x")
            # Each turn takes both processors, which others may want as well.
            assert wait_until(lambda: not instance.drain(), 300)
            instance.stop()
        # Python touches files of its own.
        inode = cold.stat().st_ino
        touched = [fields[0] for _, name, fields in instance.events() if name == MAP and fields[2] == inode]
    finally:
        for child in children:
            child.kill()
            child.communicate()
        for end in (*ends[0], *ends[1]):
            os.close(end)
    turns = [touched.count(child.pid) for child in children]
    assert min(turns) > 300
    assert abs(turns[0] - turns[1]) <= 1


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
    with pytest.raises(LabError, match=r"^There is no process \d+\.$"):
        Process(program.process + (1 << 22))


@here
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_us_nothing_is_left(number: int, cold: Path, tmp_path: Path) -> None:
    out = tmp_path / "t"
    argv = ["-m", "foliolab", "trace", "record", "--live", "-o", str(out), "--file", str(cold), "--"]
    lab = subprocess.Popen(
        [sys.executable, *argv, *touching(cold, [1, 400], 300)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert lab.stdout
    assert lab.stdout.readline() == b"touched\n"
    assert instances(lab.pid) == [f"foliolab-live-{lab.pid}"]
    # Ctrl-C is for all in the foreground.
    (os.killpg if number == signal.SIGINT else os.kill)(lab.pid, number)
    lab.communicate(timeout=60)
    assert wait_until(lambda: not instances(lab.pid))
    if number == signal.SIGKILL:
        assert not out.exists()
    else:
        assert list(read_trace(out).page_of) == [1, 400]
        assert lab.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir() if path.name != "t"] == ["cold"]


@here
def test_a_container_has_other_process_numbers() -> None:
    code = "from foliolab.live.tracefs import tracefs; tracefs()"
    argv = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "this container has its own." in done.stderr


KILLED = """
import os, pathlib, signal
from foliolab.live.touches import ADD, FIELDS
from foliolab.live.tracefs import Instance
make = pathlib.Path.mkdir
def made_and_killed(*words, **options):
    make(*words, **options)
    os.kill(os.getpid(), signal.SIGKILL)
pathlib.Path.mkdir = made_and_killed
with Instance({ADD: FIELDS[ADD]}, 1 << 20):
    pass
"""


@here
def test_a_kill_before_anything_is_recorded_leaves_nothing() -> None:
    killed = subprocess.Popen([sys.executable, "-c", KILLED])
    assert killed.wait() == -signal.SIGKILL
    assert wait_until(lambda: not instances(killed.pid))


@here
def test_what_the_buffer_has_no_room_for_is_counted(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliolab.live.tracefs._MOST_KIB", 8)
    monkeypatch.setattr("foliolab.live.record._DRAIN_SECONDS", 1)
    trace = record(StartedProgram(touching(cold, list(range(0, PAGES, 3)))), patterns=[str(cold)]).trace
    assert trace.lost > 0


@here
def test_nobody_to_record_is_not_everybody() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    with Instance({ADD: FIELDS[ADD]}, 1 << 20) as instance:
        with pytest.raises(UsageError, match=r"^What was to be recorded has ended\.$"):
            instance.start([gone.pid])
        assert (tracefs() / "instances" / f"foliolab-live-{os.getpid()}" / "tracing_on").read_text() == "0\n"


@here
def test_many_threads_and_one_that_comes_meanwhile(
    cold: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = start(cold)
    program.tell("threads 1500")
    listed: list[int] = []

    def one_more_comes(pids: Iterable[int]) -> list[int]:
        found = tasks_of(pids)
        if not listed:
            program.tell("threads 1")
        listed[:] = found
        return found

    monkeypatch.setattr(live_tracefs, "tasks_of", one_more_comes)
    with Instance({ADD: FIELDS[ADD]}, 1 << 20) as instance:
        instance.start([program.pid])
        assert sorted(instance.tasks()) == sorted(tasks_of([program.pid]))
        assert len(instance.tasks()) == 1502


@here
def test_what_others_have_left_is_removed(cold: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    stale = tracefs() / "instances" / f"foliolab-live-{gone.pid}"
    stale.mkdir()
    record(StartedProgram(["true"]), patterns=[str(cold)])
    assert not stale.exists()


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
        (["--live"], "Name a program, or with --live a process by --pid."),
        (["--live", "--pid", "1", "true"], "Name a program, or with --live a process by --pid."),
        (["--pid", "1"], "--pid goes with --live only."),
        (["--fine", "true"], "--fine goes with --live only."),
        (["--live", "--disk", "ext4:1G", "true"], "--disk is of guests; it does not go with --live."),
        (["--live", "--seconds", "0", "true"], "--seconds takes a number above 0."),
        (["--live", "--limit", "x", "true"], "'x' is not a size such as 512M or 20G."),
        (["--live", "--reads", "/nowhere/r", "true"], "--reads: /nowhere is no directory."),
        (["--live", "/nowhere/program"], "There is no program /nowhere/program."),
        (["--live", "--pid", str(1 << 23)], f"There is no process {1 << 23}."),
    ],
)
def test_what_makes_no_sense(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "record", "-o", str(tmp_path / "t"), *words]) == 2
    assert capsys.readouterr().err == f"lab: {sentence}\n"

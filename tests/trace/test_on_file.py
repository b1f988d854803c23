# SPDX-License-Identifier: GPL-2.0-only
"""Traces replayed on a file: what is compared, what is told of it, and how the command ends."""

import json
import os
import re
import signal
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost.devices import device_of, windows_adapt
from foliohost.trace import Trace, TraceFile, write_trace
from foliolab.cli.main import main
from foliolab.errors import NoCure
from foliolab.model.reads import KernelRun, ReadRun
from foliolab.report.trace import print_timed
from foliolab.trace.on_file import ReadCosts, TimedReplay, _turns, apart_from, bases, joined, time_replays
from foliolab.trace.replay import replays
from tests.cli.command import lab
from tests.disk_files import disk_file
from tests.printed import printed
from tests.processes import started, wait_until

PAGES = [page * 97 % 2048 for page in range(300)]
TRACE = Trace(
    files=(TraceFile("a", 2), TraceFile("b", 2046)),
    file_of=array("I", [int(page > 1) for page in PAGES]),
    page_of=array("I", [page - 2 if page > 1 else page for page in PAGES]),
    window=16,
    memory_bytes=4 << 20,
)
SIZE = 2048 * 4096


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory on a disk, with a trace and a file that is large enough for it."""
    with disk_file(tmp_path, 4096):
        write_trace(tmp_path / "small.trace", TRACE)
        (tmp_path / "file").write_bytes(os.urandom(SIZE))
        return tmp_path


def timed(*seconds: Sequence[float], kernel: Sequence[KernelRun] = ()) -> list[TimedReplay]:
    """Of off, adaptive and random in this order, with these seconds."""
    found = replays("t", TRACE, ["off", "adaptive", "random"][: len(seconds)], [128])
    return [
        TimedReplay(
            each, tuple(ReadRun(value, each.counts, 10, 100 * 4096, 7, "io_uring") for value in some), tuple(kernel)
        )
        for each, some in zip(found, seconds, strict=True)
    ]


def test_only_ranges_that_do_not_overlap_differ() -> None:
    assert apart_from([1, 2, 3], [3.1, 4, 5])
    assert apart_from([3.1, 4, 5], [1, 2, 3])
    assert not apart_from([1, 2, 3], [3, 4, 5])
    assert not apart_from([1, 2, 9], [3, 4, 5])


def test_each_is_compared_with_the_first_variant_of_its_window_and_memory() -> None:
    found = [
        TimedReplay(each, (), ())
        for each in replays("t", TRACE, ["off", "random", "adaptive"], [128, 256], memory_bytes=8 << 20)
    ]
    assert [each.replay.read_ahead_kb for each in found] == [128, 256] * 3
    assert bases(found) == found[:2] * 3
    other = TimedReplay(replace(found[3].replay, memory_bytes=1 << 20), (), ())
    assert bases([*found[:3], other])[3] is other


def test_the_prediction_adds_what_requests_and_pages_cost() -> None:
    (each,) = timed([1, 2, 3])
    assert ReadCosts(request_us=50, page_us=8).seconds(each.runs[0]) == pytest.approx(10 * 50e-6 + 100 * 8e-6)


def test_json_has_medians_runs_and_no_verdict_in_the_noise() -> None:
    off, adaptive, random = timed([1, 2, 3], [2.5, 0.5, 1], [0.1, 0.3, 0.2])
    assert off.to_json(off, None)["predicted_seconds"] is None
    row = adaptive.to_json(off, ReadCosts(1, 1))
    assert {key: row[key] for key in ("seconds", "runs", "requests", "read_bytes", "waits", "read_by")} == {
        "seconds": 1, "runs": [2.5, 0.5, 1], "requests": 10, "read_bytes": 409600, "waits": 7, "read_by": "io_uring",
    }  # fmt: skip
    assert (row["against"], row["ratio"], row["differs"], row["kernel"]) == ("off", 0.5, False, None)
    assert row["predicted_seconds"] == pytest.approx(110e-6)
    assert random.to_json(off, None)["differs"]


def test_a_table_tells_no_winner_in_the_noise() -> None:
    found = timed([1, 2, 3], [2.5, 0.5, 1], [0.1, 0.3, 0.2])
    lines = printed(lambda console: print_timed(console, found, ReadCosts(50, 8)), 200)
    cells = {line.split()[1]: re.split(r"  +", line) for line in lines if line.startswith("t ")}
    assert cells["off"][4:6] == ["2.000", "1.000 to 3.000"]
    assert cells["adaptive"][4:7] == ["1.000", "0.500 to 2.500", "within noise"]
    assert cells["random"][6:8] == ["10.0x less", "0.001"]
    assert "Medians of 3 replays, read by io_uring." in lines[-1]


def test_a_table_has_the_running_kernel_beside() -> None:
    runs = [KernelRun(value, 50 * 4096, faults) for value, faults in ((4, 4), (5, 4), (9, 3))]
    found = timed([1, 2, 3], kernel=runs)
    line = next(line for line in printed(lambda c: print_timed(c, found, None), 200) if line.startswith("t "))
    faults = found[0].replay.counts.major_faults
    assert re.split(r"  +", line)[6:11] == [
        "5.000", "4.000 to 9.000", "-60.0 %", "+100.0 %", f"{(faults / 4 - 1) * 100:+.1f} %",
    ]  # fmt: skip
    assert found[0].to_json(found[0], None)["kernel"] == {
        "seconds": 5, "read_bytes": 50 * 4096, "major_faults": 4, "runs": [4, 5, 9],
    }  # fmt: skip


def test_one_file_has_the_pages_of_all() -> None:
    one = joined(TRACE, 3000)
    assert (list(one.page_of), set(one.file_of), one.files[0].pages) == (PAGES, {0}, 3000)


def test_the_first_round_is_not_counted_and_each_begins_with_another_one(place: Path) -> None:
    assert list(_turns(2, 3)) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 0), (2, 2), (2, 0), (2, 1)]
    found = list(replays("t", TRACE, ["off", "random"], [128]))
    results = time_replays(TRACE, found, place / "file", 3, {"random": True})
    assert [(len(each.runs), len(each.kernel)) for each in results] == [(3, 0), (3, 3)]
    assert {run.counts == each.replay.counts for each in results for run in each.runs} == {True}


def test_the_command_prints_json(place: Path) -> None:
    before = (place / "file").stat()
    argv = ["trace", "replay", str(place / "small.trace"), "--on", str(place / "file"), "--variant", "off,random"]
    done = lab(*argv, "--read-ahead-kb", "128,256", "--request-us", "50", "--page-us", "9", "--json")
    assert done.returncode == 0
    rows = json.loads(done.stdout)["replays"]
    assert [(row["variant"], row["read_ahead_kb"]) for row in rows] == [
        ("off", 128), ("off", 256), ("random", 128), ("random", 256),
    ]  # fmt: skip
    for row in rows:
        assert min(row["runs"]) <= row["seconds"] <= max(row["runs"])
        assert len(row["runs"]) == 3
        assert row["read_bytes"] == row["predicted"]["read_bytes"]
        assert row["predicted_seconds"] == pytest.approx((row["requests"] * 50 + row["read_bytes"] / 4096 * 9) / 1e6)
    assert (place / "file").stat().st_mtime_ns == before.st_mtime_ns


def test_the_running_kernel_can_be_asked_too(place: Path) -> None:
    if windows_adapt():
        pytest.skip("the kernel that runs here is none that the model's stock rules are of")
    try:
        window = device_of(place / "file").read_ahead_kb
    except NoCure as error:
        pytest.skip(str(error))
    argv = ["trace", "replay", str(place / "small.trace"), "--on", str(place / "file"), "--kernel-too", "--json"]
    done = lab(*argv, "--variant", "adaptive,random")
    assert done.returncode == 0
    adaptive, random = json.loads(done.stdout)["replays"]
    assert (adaptive["read_ahead_kb"], adaptive["kernel"]) == (window, None)
    assert random["read_bytes"] == 300 * 4096
    # But for what a busy machine, another kernel or another file system may change.
    assert random["kernel"]["read_bytes"] == pytest.approx(300 * 4096, rel=0.02, abs=64 << 10)
    assert random["kernel"]["major_faults"] == pytest.approx(300, rel=0.02)


def test_the_running_kernel_must_be_one_of_the_variants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(tmp_path / "small.trace", TRACE)
    other, own = ("off", "adaptive") if windows_adapt() else ("adaptive", "off")
    argv = ["trace", "replay", str(tmp_path / "small.trace"), "--scratch", str(tmp_path), "--kernel-too"]
    assert main([*argv, "--variant", f"published,{other}"]) == 2
    assert f"needs a --variant that the running kernel can be: {own} or random." in capsys.readouterr().err


def test_a_scratch_file_is_made_and_goes(place: Path) -> None:
    there = sorted(place.iterdir())
    argv = ["trace", "replay", str(place / "small.trace"), "--scratch", str(place), "--variant", "random"]
    done = lab(*argv, "--read-ahead-kb", "128", COLUMNS="120")
    assert (done.returncode, sorted(place.iterdir())) == (0, there)
    assert "Traces on a disk of this machine" in done.stdout


def long_replay(place: Path) -> list[str]:
    """Arguments of a command that takes minutes."""
    write_trace(place / "long.trace", replace(TRACE, page_of=TRACE.page_of * 2000, file_of=TRACE.file_of * 2000))
    where = ["--scratch", str(place), "--variant", "random", "--read-ahead-kb", "128", "--memory", "256K"]
    return ["-m", "foliolab", "trace", "replay", str(place / "long.trace"), *where, "--repetitions", "99"]


@pytest.mark.parametrize(("how", "status"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_nothing_is_left_however_the_command_ends(place: Path, how: signal.Signals, status: int) -> None:
    argv = long_replay(place)
    there = sorted(place.iterdir())
    with started(*argv) as process:
        assert wait_until(lambda: scratch_of(process.pid, place) == SIZE)
        assert sorted(place.iterdir()) == there
        process.send_signal(how)
        assert process.wait(timeout=60) == status
    assert sorted(place.iterdir()) == there


def scratch_of(pid: int, place: Path) -> int:
    """Bytes of a process's open file that has no name in a directory."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            target = str(link.readlink())
            if target.startswith(str(place)) and target.endswith("(deleted)"):
                return link.stat().st_size
    return 0


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--on", "/none"], "There is no file /none."),
        (["--on", "/"], "/ is no regular file."),
        (["--scratch", "/none"], "There is no directory /none."),
        (["--on", "README.md"], "README.md is too small: it has"),
        (["--kernel-too"], "--kernel-too goes with --on or --scratch only."),
        (["--repetitions", "4"], "--repetitions goes with --on or --scratch only."),
        (["--repetitions", "0"], "--repetitions goes with --on or --scratch only."),
        (["--on", "x", "--device", "nvme"], "--device does not go with --on and --scratch."),
        (["--on", "x", "--table"], "--table does not go with --on and --scratch."),
        (["--on", "x", "--repetitions", "2"], "--repetitions is at least 3"),
        (["--on", "x", "--page-us", "2"], "--request-us and --page-us go together."),
        (["--on", "x", "--page-us", "2", "--request-us", "nan"], "are times from 0"),
        (["--on", "x", "--kernel-too", "--memory", "9M"], "--memory does not go with --kernel-too."),
        (["--on", "x", "--kernel-too", "--read-ahead-kb", "64"], "--read-ahead-kb does not go with --kernel-too."),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    tmp_path: Path, argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trace(tmp_path / "small.trace", TRACE)
    assert main(["trace", "replay", str(tmp_path / "small.trace"), *argv]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err[:5]) == ("", "lab: ")
    assert words in said.err

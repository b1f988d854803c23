# SPDX-License-Identifier: GPL-2.0-only
"""Traces in the model, and the commands about them."""

import json
import re
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost.trace import Measured, Trace, TraceFile, write_trace
from foliolab.analyse.agreement import apart
from foliolab.device import Device
from foliolab.errors import BadTrace, ModelError, NoResult, UsageError
from foliolab.model.clock import Clock
from foliolab.model.library import Machine
from foliolab.model.library import replay as replay_pages
from foliolab.report.columns import off_by
from foliolab.report.markdown import document_table
from foliolab.report.trace import difference_columns, print_replays
from foliolab.trace.replay import Figures, read_replayable, replays
from tests.cli.command import lab, sentence
from tests.printed import printed

PAGES = [page * 97 % 4096 for page in range(500)]
TRACE = Trace(
    files=(TraceFile("/data/data.mdb", 4096),),
    file_of=array("I", [0] * len(PAGES)),
    page_of=array("I", PAGES),
    window=16,
    memory_bytes=8 << 20,
    program=("driver", "a b"),
    measured=(
        Measured("off", 128, 10 << 20, 100, 200),
        Measured("off", 128, 12 << 20, 102, 202),
        Measured("adaptive", 128, 5 << 20, 0, 400, memory_bytes=4 << 20),
    ),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "lmdb.trace"
    write_trace(path, TRACE)
    return path


def test_what_is_predicted_is_what_the_model_says() -> None:
    (found,) = replays("t", TRACE, ["published"], [128])
    counts = replay_pages(Machine("published", 4096, 2048, 32, reclaim="lists"), PAGES)
    assert found.counts == counts
    assert found.predicted == Figures(counts.pages_read * 4096, counts.requests, counts.major_faults)
    assert found.recorded is None


def test_the_recorded_figures_are_the_mean_of_those_with_the_same_variant_window_and_memory() -> None:
    off, wide, adaptive, wide_adaptive = replays("t", TRACE, ["off", "adaptive"], [128, 512])
    assert off.recorded == Figures(11 << 20, 101, 201)
    assert (off.memory_bytes, adaptive.memory_bytes, wide_adaptive.memory_bytes) == (8 << 20, 4 << 20, 8 << 20)
    assert adaptive.recorded == Figures(5 << 20, 0, 400)
    assert wide.recorded is None
    assert wide_adaptive.recorded is None


def test_a_table_tells_how_far_the_model_is_off() -> None:
    found = list(replays("traces/t.trace", TRACE, ["off", "adaptive"], [128, 512]))
    off, _, adaptive, _ = (each.predicted for each in found)
    head, _, row = document_table(difference_columns(found)).splitlines()
    assert head == "| trace | off, 128 | adaptive, 128 |"
    pairs = [
        (off.read_bytes, 11 << 20),
        (off.read_requests, 101),
        (off.major_faults, 201),
        (adaptive.read_bytes, 5 << 20),
        (adaptive.major_faults, 400),
    ]
    read, requests, faults, read_less, waits = (f"{(one / other - 1) * 100:+.0f}" for one, other in pairs)
    assert row == f"| t | {read} / {requests} / {faults} | {read_less} / - / {waits} |"
    with pytest.raises(NoResult, match="Nothing was measured"):
        difference_columns([each for each in found if not each.recorded])


def test_another_memory_was_not_measured() -> None:
    (found,) = replays("t", TRACE, ["off"], [128], memory_bytes=16 << 20)
    assert (found.memory_bytes, found.recorded) == (16 << 20, None)
    (found,) = replays("t", TRACE, ["adaptive"], [128], memory_bytes=4 << 20)
    assert found.recorded == Figures(5 << 20, 0, 400)


def test_measurements_with_several_memories_are_all_compared() -> None:
    measured = (Measured("off", 128, 1, 2, 3, memory_bytes=2 << 20), Measured("off", 128, 4, 5, 6))
    found = list(replays("t", replace(TRACE, measured=measured), ["off"], [128]))
    assert [(each.memory_bytes, each.recorded) for each in found] == [
        (2 << 20, Figures(1, 2, 3)), (8 << 20, Figures(4, 5, 6)),
    ]  # fmt: skip


def test_requests_cost_what_the_device_makes_them_cost_and_seconds_are_those_there() -> None:
    cheap, dear = Device("cheap", 4, 1000, 0, 64), Device("dear", 4000, 1000, 0, 64)
    soon, late = (next(replays("t", TRACE, ["adaptive"], [128], 8 << 20, device)) for device in (cheap, dear))
    assert replace(soon.counts, seconds={}) != replace(late.counts, seconds={})
    for found, device in ((soon, cheap), (late, dear)):
        machine = Machine("adaptive", 4096, 2048, 32, device.measured_request_kb // 4, reclaim="lists")
        assert found.counts == replay_pages(machine, PAGES, clock=Clock((device,)))
        assert found.seconds == found.counts.seconds[device.name]
    assert next(replays("t", TRACE, ["adaptive"], [128])).seconds is None


def test_no_memory_and_too_little_of_it() -> None:
    with pytest.raises(UsageError, match="t does not say how much memory its files had; say --memory SIZE"):
        list(replays("t", replace(TRACE, memory_bytes=None), ["off"], [4096]))
    with pytest.raises(ModelError, match="too small: it has to hold two windows"):
        list(replays("t", TRACE, ["off"], [8192]))


def test_what_the_model_cannot_replay(tmp_path: Path) -> None:
    write_trace(tmp_path / "t", replace(TRACE, page_size=16384))
    with pytest.raises(BadTrace, match="has pages of 16384 bytes; the model's have 4096"):
        read_replayable(tmp_path / "t")
    write_trace(tmp_path / "t", Trace((TraceFile("a", 4096),), array("I"), array("I"), 16))
    with pytest.raises(BadTrace, match="has no touches"):
        read_replayable(tmp_path / "t")


def test_how_far_apart() -> None:
    assert [off_by(apart(*pair)) for pair in ((110, 100), (95, 100), (5, 0), (0, 0))] == [
        "+10.0 %", "-5.0 %", "from none", "+0.0 %",
    ]  # fmt: skip


def table(width: int) -> list[str]:
    found = list(replays("/somewhere/lmdb.trace", TRACE, ["off", "adaptive"], [128]))
    return printed(lambda console: print_replays(console, found), width)


def test_predicted_beside_recorded() -> None:
    line = next(line for line in table(140) if " adaptive " in line)
    found = next(replays("t", TRACE, ["adaptive"], [128])).predicted
    assert re.split(r"  +", line) == [
        "lmdb", "adaptive", "128", "4.0",
        f"{found.read_bytes / (1 << 20):.1f}", "5.0", off_by(apart(found.read_bytes, 5 << 20)),
        str(found.read_requests), "0", "from none",
        str(found.major_faults), "400", off_by(apart(found.major_faults, 400)),
    ]  # fmt: skip


@pytest.mark.parametrize("width", [20, 60, 80])
def test_no_figure_is_cut_where_room_is_short(width: int) -> None:
    off = next(replays("t", TRACE, ["off"], [128])).predicted
    line = next(line for line in table(width) if line.startswith("lmdb"))
    figures = [f"{off.read_bytes / (1 << 20):.1f}", "11.0", off_by(apart(off.read_bytes, 11 << 20))]
    assert re.split(r"  +", line)[3:6] == figures


def test_json(path: Path) -> None:
    done = lab("trace", "replay", str(path), "--variant", "off,random", "--read-ahead-kb", "128", "--json")
    assert done.returncode == 0
    off, random = json.loads(done.stdout)["replays"]
    assert set(off) == {"trace", "variant", "read_ahead_kb", "memory_bytes", "predicted", "recorded", "seconds"}
    assert off["seconds"] is None
    assert (off["trace"], off["variant"], off["read_ahead_kb"]) == (str(path), "off", 128)
    assert off["recorded"] == {"read_bytes": 11 << 20, "read_requests": 101, "major_faults": 201}
    assert set(off["predicted"]) == set(off["recorded"])
    assert random["recorded"] is None
    assert random["predicted"]["read_bytes"] == 500 * 4096


def test_the_command_prints_a_table(path: Path) -> None:
    done = lab("trace", "replay", str(path), "--device", "nvme", "--memory", "9M", COLUMNS="120")
    assert done.returncode == 0
    assert "seconds" in done.stdout
    assert "recorded" not in done.stdout


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["replay", "none.trace"], 15, "The trace none.trace cannot be read: No such file or directory."),
        (["replay", "README.md"], 15, "README.md is not a trace."),
        (["replay", "PATH", "--variant", "stock"], 2, "no variant 'stock'; known: off, published, adaptive, random"),
        (["replay", "PATH", "--read-ahead-kb", "128k"], 2, "--read-ahead-kb takes numbers of KiB"),
        (["replay", "PATH", "--memory", "much"], 2, "'much' is not a size"),
        (
            ["replay", "PATH", "--device", "tape"],
            2,
            "There is no device 'tape'; there are nvme, sata, cloud, hdd, remote",
        ),
        (["replay", "PATH", "--memory", "1M"], 36, "A memory of 256 pages is too small"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(path: Path, argv: list[str], status: int, words: str) -> None:
    done = lab("trace", *(str(path) if word == "PATH" else word for word in argv))
    assert words in sentence(done)
    assert (done.returncode, done.stdout) == (status, "")

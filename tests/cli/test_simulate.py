# SPDX-License-Identifier: GPL-2.0-only
import json
import signal
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from foliohost.trace import Trace, TraceFile, write_trace
from foliolab.cli import simulate
from foliolab.cli.main import main
from foliolab.errors import UsageError
from foliolab.files import REPOSITORY
from foliolab.simulate.suite import load_suite
from tests.cli.command import lab, sentence
from tests.processes import wait_until
from tests.simulate.small import RIVALS, row


def test_json_is_alone_and_has_what_was_asked_for() -> None:
    done = lab(
        "simulate", "--json", "--pattern", "stride-127,stride-1021", "--pattern", "random-0.1%", "--device", "nvme"
    )
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert set(document) == {"rows"}
    rows = document["rows"]
    assert {row["pattern"] for row in rows} == {"stride-127", "stride-1021", "random-0.1%"}
    assert {row["device"] for row in rows} == {"nvme"}
    assert {row["memory"] for row in rows} == {0.5, 1, 1.2, 3, 20}
    assert len(rows) == 2 * 5 * 3 * (12 + 11)
    oracle = {"fixed-" + str(row["oracle_window_kb"]): row["oracle_cost"] for row in rows[:22]}
    assert [row["cost"] for row in rows[:22] if row["variant"] in oracle] == list(oracle.values())
    fixed = [row["time_regret"] for row in rows if row["variant"].startswith("fixed-")]
    assert min(fixed) == 1 and max(fixed) > 2


def test_devices_are_names_or_numbers() -> None:
    devices = ["--device", "nvme,sata", "--device", "80,3000,0,64", "--device", "sata"]
    done = lab("simulate", "--json", "--pattern", "small-300-random", *devices)
    rows = json.loads(done.stdout)["rows"]
    assert list(dict.fromkeys(row["device"] for row in rows)) == ["nvme", "sata", "80,3000,0,64"]
    named, given = (
        [{**row, "device": ""} for row in rows if row["device"] == device] for device in ("nvme", "80,3000,0,64")
    )
    assert named == given


def test_tables() -> None:
    done = lab("simulate", "--pattern", "random-0.1%")
    assert done.returncode == 0
    assert done.stdout.startswith("Regret by variant, 50 cells\n")
    assert "\nRegret by device, all\n" in done.stdout
    assert "\nrandom-0.1% " in done.stdout


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--pattern", "no-such"], "There is no pattern 'no-such'; known: random-0.1%, random-1%"),
        (
            ["--device", "nvme,tape"],
            "There is no device 'tape'; there are nvme, sata, cloud, hdd, remote, or four numbers",
        ),
        (["--device", "1,2,3,0"], "There is no such device as '1,2,3,0': the latency is up to"),
    ],
)
def test_unknown_names(argv: list[str], words: str) -> None:
    done = lab("simulate", *argv)
    assert words in sentence(done)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    ("regret_of_adaptive", "status", "words"),
    [
        (0.99, 0, ""),
        (
            1.6,
            1,
            "lab: 2 of 24 checks fail; the first: adaptive is near the best window: patterns, adaptive, mean: 1.6, ",
        ),
    ],
)
def test_check(
    regret_of_adaptive: float,
    status: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    regrets = {"off": 2.0, "published": 2.0, "adaptive": regret_of_adaptive} | dict.fromkeys(RIVALS, 90.0)
    monkeypatch.setattr(simulate, "make_rows", lambda *_: [row(*each) for each in regrets.items()])
    for form in ([], ["--json"]):
        assert main(["simulate", *form]) == 0
        alone = capsys.readouterr()
        assert main(["simulate", "--check", *form]) == status
        checked = capsys.readouterr()
        assert checked.out == alone.out
        assert checked.err.startswith(words)
        assert bool(checked.err) == bool(status)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    pages = array("I", range(0, 65536, 32))
    write_trace(tmp_path / "own.trace", Trace((TraceFile("a", 65536),), array("I", [0] * len(pages)), pages, 16))
    return tmp_path / "own.trace"


def test_a_trace_of_the_user(own: Path) -> None:
    done = lab("simulate", "--json", "--pattern", "stride-127", "--device", "nvme", "--trace", str(own))
    assert done.returncode == 0
    rows = json.loads(done.stdout)["rows"]
    assert {row["pattern"] for row in rows} == {"stride-127", "trace:own"}
    # All but the smallest memory with the largest window.
    assert len([row for row in rows if row["pattern"] == "trace:own"]) == 5 * 2 * (12 + 11)


@pytest.mark.parametrize("argv", [["--pattern", "zipf"], ["--device", "nvme"], ["--trace", "some.trace"]])
def test_bounds_are_those_of_the_whole_suite(argv: list[str], own: Path) -> None:
    done = lab("simulate", "--check", *[str(own) if word == "some.trace" else word for word in argv])
    words = "--check is about the whole suite: it goes with none of --pattern, --trace and --device."
    assert (done.returncode, sentence(done)) == (2, words)


@pytest.mark.parametrize("argv", [["--pattern", "zipf"], ["--device", "nvme"], ["--trace", "some.trace"]])
def test_a_table_of_documents_is_of_the_whole_suite(argv: list[str], own: Path) -> None:
    done = lab("simulate", "--table", *[str(own) if word == "some.trace" else word for word in argv])
    words = "--table is about all cells: it goes with none of --pattern, --trace and --device."
    assert (done.returncode, sentence(done)) == (2, words)


@pytest.mark.parametrize("option", ["--check", "--json"])
def test_an_ablation_is_a_table_without_bounds(option: str) -> None:
    done = lab("simulate", option, "--ablation")
    words = "--ablation has no bounds, and is a table: it goes with neither --check nor --json."
    assert (done.returncode, sentence(done)) == (2, words)


def test_traces_that_cannot_be_compared(tmp_path: Path) -> None:
    write_trace(tmp_path / "small", Trace((TraceFile("a", 9),), array("I", [0]), array("I", [0]), 16))
    done = lab("simulate", "--trace", str(tmp_path / "small"))
    assert (done.returncode, sentence(done)) == (2, "The files of trace:small have 9 pages, too few for any cell.")
    done = lab("simulate", "--trace", str(tmp_path / "none"))
    assert done.returncode == 15


def test_ctrl_c_ends_it_at_once_and_it_goes_on_later(own_cache: Path) -> None:
    argv = [sys.executable, "-m", "foliolab", "simulate"]
    with subprocess.Popen(argv, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr
        assert any("simulating" in line for line in running.stderr)
        kept = own_cache / "model"
        assert wait_until(lambda: list(kept.glob("*/runs/*.json")) or running.poll() is not None)
        running.send_signal(signal.SIGINT)
        words = running.stderr.read()
        assert running.wait(timeout=60) == 130
    assert words == "lab: Interrupted; what was measured is kept, and the same command goes on from there.\n"
    assert 0 < len(list(kept.glob("*/runs/*.json"))) < len(load_suite().cases)


@pytest.mark.parametrize("other", [["--pattern", "zipf"], ["--device", "nvme"]])
def test_a_table_is_of_all_cells(other: list[str]) -> None:
    done = lab("simulate", "--table", *other)
    assert done.returncode == UsageError.status
    assert "--table is about all cells" in sentence(done)

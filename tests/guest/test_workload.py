# SPDX-License-Identifier: GPL-2.0-only
"""The probe by itself on this machine, where nothing limits its memory; what that does is tested in a guest."""

import subprocess
from pathlib import Path

import pytest

from foliolab.experiment.load import find_experiment
from foliolab.experiment.metrics import METRICS
from tests.guest.program import PAGE, failed, run

PROBE = "workload"
MEMORY = 16 << 20
PAGES = MEMORY // PAGE

EXPERIMENT = find_experiment("workloads")
WORKLOADS = [str(cell.as_dict()["workload"]) for cell in EXPERIMENT.scale("quick").cells]
FACTS = ["probe", "workload", "file", "memory", "seed", "page_size", "work"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("workload") / "file"
    with path.open("wb") as stream:
        stream.truncate(3 * MEMORY)
    return path


def options(workload: str, file: Path) -> list[str | Path]:
    return ["--workload", workload, "--memory", "16M", "--file", file, "--scratch", f"{file}.scratch", "--no-group"]


def test_the_experiment_has_every_workload(probe: Path) -> None:
    words = subprocess.run([probe, "--help"], capture_output=True, check=True, text=True).stdout
    listed = words.partition("--workload NAME  ")[2].partition("--memory BYTES")[0].splitlines()[1:]
    assert [line.split()[0] for line in listed if line.startswith(" " * 6) and line[6] != " "] == WORKLOADS


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_does_the_same_work_each_time(probe: Path, file: Path, workload: str) -> None:
    first, again = (run(probe, *options(workload, file)) for _ in range(2))
    assert list(first)[: len(FACTS)] == FACTS
    assert {*EXPERIMENT.columns, "cpu_seconds", "seconds"} <= set(first)
    assert (first["workload"], first["memory"], first["page_size"]) == (workload, MEMORY, PAGE)
    assert first["work"] == again["work"] > 0
    assert first["seconds"] > 0 < first["cpu_seconds"]
    assert first["peak_memory_bytes"] is None
    assert set(list(first)[len(FACTS) :]) <= set(METRICS)


@pytest.mark.parametrize(
    ("workload", "thousandths"),
    [
        ("mmap-sequential", 2 * 1500),
        ("mmap-random-exceeds", 2 * 500),
        ("mmap-phases", 4 * 1500),
        ("read-mix", 3 * (500 + 500)),
        ("anon-file-swap", 3 * (4000 + 500)),
    ],
)
def test_work_is_in_pages(probe: Path, file: Path, workload: str, thousandths: int) -> None:
    """But for what is lost to whole chunks of 16 pages, in a round of touches and in one of the stream."""
    work = run(probe, *options(workload, file))["work"]
    assert 0 <= PAGES * thousandths // 1000 - work < 4 * 2 * 16


def test_anonymous_memory_is_faulted_in(probe: Path, file: Path) -> None:
    """By Zipf's law: some of the pages in the rounds that are measured, and none that has been there before."""
    assert 0 < run(probe, *options("anon-swap", file))["minor_faults"] < 2 * PAGES


def test_what_warms_up_is_not_counted(probe: Path, file: Path) -> None:
    """Memory is faulted in when it is used first, which is in the first rounds."""
    arguments = options("anon-swap", file)
    cold, warm = (run(probe, *arguments, "--warm-up", rounds) for rounds in ("0", "6"))
    assert cold["work"] == warm["work"]
    assert 0 < 2 * warm["minor_faults"] < cold["minor_faults"]


def test_a_set_that_is_mapped_anew_is_faulted_in_anew(probe: Path, file: Path) -> None:
    """With half of M in the file's first pages, and 16 of them mapped by each fault at the most."""
    subprocess.run(["dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none"], check=True)
    faults = run(probe, *options("mmap-random-fits", file))
    assert faults["minor_faults"] + faults["major_faults"] >= 4 * PAGES / 2 * 0.8 / 16


def test_faults_of_children_are_counted(probe: Path, file: Path) -> None:
    result = run(probe, *options("fork-heavy", file))
    assert result["work"] == 4 * 64
    # Each writes 16 pages of its own.
    assert result["minor_faults"] > result["work"] * 16


def test_what_is_written_is_gone_afterwards(probe: Path, file: Path) -> None:
    before = sorted(file.parent.iterdir())
    run(probe, *options("file-write-mix", file))
    assert sorted(file.parent.iterdir()) == before


def test_no_file_is_overwritten(probe: Path, file: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    arguments = [*options("file-write-mix", file), "--scratch", mine]
    assert failed(probe, *arguments) == (1, f"workload: {mine}: File exists.")
    assert mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--workload is missing; see --help."),
        (["--workload", "anon-swap"], "--memory is missing; see --help."),
        (["--workload", "swap"], "--workload has no value 'swap'; see --help."),
        (["--workload", "anon-swap", "x"], "'x' is not an option; see --help."),
        (["--workload", "anon-swap", "--memory", "15M"], "--memory has to be at least 16M."),
        (["--workload", "anon-swap", "--memory", "much"], "--memory takes a number of at least 1, not 'much'."),
        (["--seed", "-1"], "--seed takes a number of at least 0, not '-1'."),
        (["--warm-up", "x"], "--warm-up takes a number of at least 0, not 'x'."),
        (["--warm-up", "1001"], "--warm-up goes up to 1000."),
        (["--read-ahead-kb", "x"], "--read-ahead-kb takes a number of at least 0, not 'x'."),
        (
            ["--workload", "file-write-mix", "--memory", "16M", "--file", "x"],
            "--workload file-write-mix with --file needs --scratch.",
        ),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"workload: {sentence}")


def test_files_that_cannot_be_used(probe: Path, tmp_path: Path) -> None:
    nowhere = options("strided", tmp_path / "nowhere")
    assert failed(probe, *nowhere) == (1, f"workload: {tmp_path}/nowhere: No such file or directory.")
    (tmp_path / "small").write_bytes(bytes(PAGE))
    sentence = f"workload: {tmp_path}/small holds less than 3 times --memory."
    assert failed(probe, *options("strided", tmp_path / "small")) == (1, sentence)

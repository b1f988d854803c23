# SPDX-License-Identifier: GPL-2.0-only
"""The probe by itself on this machine, with files that make-files has made."""

import subprocess
from pathlib import Path

import pytest

from tests.guest.program import PAGE, failed, run

PROBE = "many-files"
FILES, PAGES = 10, 64


@pytest.fixture(scope="module")
def files(programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The options that name them."""
    directory = tmp_path_factory.mktemp("files")
    subprocess.run([programs["make-files"], directory, str(FILES), str(PAGES)], check=True)
    made = sorted(directory.rglob("*/*"))
    assert [file.name for file in made] == [str(number) for number in range(FILES)]
    assert {(file.stat().st_size, file.stat().st_blocks * 512) for file in made} == {(PAGES * 4096, PAGES * 4096)}
    return ["--directory", str(directory), "--files", str(FILES), "--file_pages", str(PAGES)]


def test_the_result_has_what_the_experiment_is_about(probe: Path, files: list[str]) -> None:
    result = run(probe, *files, "--seed", "3")
    asked = {"probe": "many-files", "access": "sparse", "files": FILES, "file_pages": PAGES, "seed": 3}
    assert asked.items() <= result.items()
    assert {"read_bytes", "read_requests", "major_faults", "minor_faults", "seconds"} <= result.keys()


def test_whole_files_are_touched_page_by_page(probe: Path, files: list[str]) -> None:
    result = run(probe, *files, "--access", "whole")
    assert result["floor_bytes"] == result["touches"] * PAGE == FILES * PAGES * 4096


def test_sparse_touches_are_seeded_and_spread_over_all_files(probe: Path, files: list[str]) -> None:
    first, again, other = (run(probe, *files, "--touches", "640", "--seed", seed)["floor_bytes"] for seed in "112")
    assert first == again != other
    # Of n pages drawn n times, 1 - 1/e are drawn at least once.
    assert 0.55 < first / (FILES * PAGES * 4096) < 0.72


def test_a_mix_reads_half_of_the_files_and_touches_the_others(probe: Path, files: list[str]) -> None:
    result = run(probe, *files, "--access", "mixed", "--touches", "10")
    half = FILES * PAGES * 4096 // 2
    assert result["touches"] == half // PAGE + 10
    assert half < result["floor_bytes"] <= half + 10 * PAGE


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--directory, --files or --file_pages is missing; see --help."),
        (["x"], "'x' is not an option; see --help."),
        (["--access", "all"], "--access has no value 'all'; see --help."),
        (["--touches", "0"], "--touches takes a number of at least 1, not '0'."),
        (["--read_ahead_kb", "much"], "--read_ahead_kb takes a number of at least 0, not 'much'."),
        (
            ["--directory", ".", "--files", "1", "--file_pages", "1", "--access", "mixed"],
            "--access mixed takes two files.",
        ),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"many-files: {sentence}")


def test_files_that_are_not_there(probe: Path, tmp_path: Path) -> None:
    arguments = ["--directory", str(tmp_path), "--files", "3", "--file_pages", "5"]
    assert failed(probe, *arguments) == (1, f"many-files: {tmp_path}/3x5/0: No such file or directory.")


def test_files_are_not_made_over_others(programs: dict[str, Path], tmp_path: Path) -> None:
    program = programs["make-files"]
    subprocess.run([program, tmp_path, "1", "1"], check=True)
    assert failed(program, str(tmp_path), "1", "1") == (1, f"make-files: {tmp_path}/1x1: File exists.")
    assert failed(program, str(tmp_path)) == (2, "make-files: Usage: make-files DIRECTORY FILES PAGES")

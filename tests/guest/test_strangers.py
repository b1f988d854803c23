# SPDX-License-Identifier: GPL-2.0-only
"""The probe by itself on this machine: what it says, and that reader and stranger take turns."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guest.program import PAGE, failed, run

PROBE = "strangers"
STRANGERS = ("none", "many-files", "random", "scan", "exec")


@pytest.fixture
def files(programs: dict[str, Path]) -> Iterator[list[str]]:
    """The options that name them. Another user has to get there, as nobody else does below tmp_path."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        for shape in (("5", "4096"), ("20", "16")):
            subprocess.run([programs["make-files"], directory, *shape], check=True)
        yield ["--directory", directory, "--file_pages", "4096", "--others", "20"]


@pytest.mark.parametrize("stranger", STRANGERS)
def test_the_reader_s_touches_are_the_same_with_any_stranger(probe: Path, files: list[str], stranger: str) -> None:
    result = run(probe, *files, "--stranger", stranger, "--reader", "records", "--turns", "30")
    asked = {"probe": "strangers", "reader": "records", "stranger": stranger, "turns": 30, "seed": 1}
    assert asked.items() <= result.items()
    assert {"read_bytes", "read_requests", "major_faults", "minor_faults", "seconds"} <= result.keys()
    assert result["floor_bytes"] == run(probe, *files, "--reader", "records", "--turns", "30")["floor_bytes"]
    assert 0 < result["floor_bytes"] <= 30 * 6 * PAGE


def test_seeds(probe: Path, files: list[str]) -> None:
    first, again, other = (run(probe, *files, "--seed", seed)["floor_bytes"] for seed in "112")
    assert first == again != other


def test_a_stranger_that_fails_is_named(probe: Path, files: list[str]) -> None:
    done = subprocess.run(
        [probe, *files, "--others", "21", "--stranger", "many-files"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "21x16/0: No such file or directory." in done.stderr
    assert "strangers: The stranger has gone." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--directory is missing; see --help."),
        (["x"], "'x' is not an option; see --help."),
        (["--stranger", "me"], "--stranger has no value 'me'; see --help."),
        (["--reader", "me"], "--reader has no value 'me'; see --help."),
        (["--turns", "0"], "--turns takes a number of at least 1, not '0'."),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"strangers: {sentence}")

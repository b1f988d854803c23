# SPDX-License-Identifier: GPL-2.0-only
"""What the probe says of what it cannot do; what it measures is tested with the disks that it is for."""

from pathlib import Path

import pytest

from tests.guest.program import failed, failed_as_nobody

PROBE = "real-text"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--root is missing; see --help."),
        (["--root", "/"], "--program is missing; see --help."),
        (["--root", "/", "--program", "perl"], "--program has no value 'perl'; see --help."),
        (["--root", "/", "--program", "gcc", "python"], "'python' is not an option; see --help."),
        (["--memory", "old"], "--memory has no value 'old'; see --help."),
        (["--fragment", "0"], "--fragment takes a number above 0 and up to 1, not '0'."),
        (["--fragment", "2"], "--fragment takes a number above 0 and up to 1, not '2'."),
        (["--seed", "-1"], "--seed takes a number of at least 0, not '-1'."),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"real-text: {sentence}")


def test_roots_that_cannot_be_used(probe: Path, tmp_path: Path) -> None:
    program = ["--program", "gcc"]
    assert failed(probe, "--root", "/nowhere", *program) == (1, "real-text: /nowhere: No such file or directory.")
    sentence = f"real-text: No file system is mounted on {tmp_path}."
    assert failed(probe, "--root", tmp_path, *program) == (1, sentence)


def test_it_takes_root(probe: Path) -> None:
    status, words = failed_as_nobody(probe, "--root", "/proc", "--program", "gcc")
    assert (status, "Only root" in words) == (1, True)

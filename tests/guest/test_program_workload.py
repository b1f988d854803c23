# SPDX-License-Identifier: GPL-2.0-only
"""What the probe says of what it cannot do; what it measures is tested with the disk that it is for."""

from pathlib import Path

import pytest

from tests.guest.program import failed, failed_as_nobody

PROBE = "program-workload"
FIO = ["--root", "/", "--workload", "fio-strided", "--file", "/etc/passwd"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--root is missing; see --help."),
        (["--root", "/"], "--workload is missing; see --help."),
        (["--root", "/", "--workload", "perl"], "--workload has no value 'perl'; see --help."),
        (["--root", "/", "--workload", "gcc", "lmdb"], "'lmdb' is not an option; see --help."),
        (["--memory", "much"], "--memory takes a number of at least 1, not 'much'."),
        (["--root", "/", "--workload", "gcc", "--file", "/etc/passwd"], "--workload gcc has no --file."),
        (["--root", "/", "--workload", "lmdb", "--seconds", "9"], "--workload lmdb has no --seconds."),
        (["--root", "/", "--workload", "sqlite", "--hint", "none"], "--workload sqlite has no --hint."),
        ([*FIO, "--hint", "random"], "--hint has no value 'random'; see --help."),
        ([*FIO, "--seconds", "1"], "--seconds takes a number of at least 2, not '1'."),
        (FIO[:4], "--workload fio-strided needs --file."),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"program-workload: {sentence}")


def test_roots_that_cannot_be_used(probe: Path, tmp_path: Path) -> None:
    workload = ["--workload", "gcc"]
    assert failed(probe, "--root", "/nowhere", *workload) == (
        1,
        "program-workload: /nowhere: No such file or directory.",
    )
    sentence = f"program-workload: No file system is mounted on {tmp_path}."
    assert failed(probe, "--root", tmp_path, *workload) == (1, sentence)


def test_it_takes_root(probe: Path) -> None:
    status, words = failed_as_nobody(probe, "--root", "/proc", "--workload", "gcc")
    assert (status, "Only root" in words) == (1, True)

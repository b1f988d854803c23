# SPDX-License-Identifier: GPL-2.0-only
"""Reported cases by themselves on this machine: what they touch, and what they say of it."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guest.program import MIB, PAGE, failed, run

PROBE = "reports"
FORMS = {
    "openers": ["each", "once"],
    "stranger": ["alone", "beside"],
    "pieces": ["fits"],
    "snapshot": [""],
    "parts": ["places", "by-64k", "by-1m", "forward", "split-forward", "random", "split-random"],
    "willneed": ["unhinted", "hinted"],
    "remote": [""],
    "writes": [""],
}
"""Of each case that touches a file and takes no control group."""
FILE_BYTES = 16 * MIB
"""A 32nd of that which sizes were reported for."""


@pytest.fixture(scope="module")
def file() -> Iterator[Path]:
    """Another user has to get there, as nobody else does below tmp_path."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = Path(directory) / "file"
        path.write_bytes(os.urandom(FILE_BYTES))
        yield path


def words(case: str, form: str = "") -> list[str]:
    return ["--case", case, *(["--form", form] if form else [])]


@pytest.mark.parametrize(("case", "form"), [(case, form) for case, forms in FORMS.items() for form in forms])
def test_cases(probe: Path, file: Path, case: str, form: str) -> None:
    result = run(probe, "--file", file, *words(case, form))
    asked = {"probe": "reports", "case": case, "form": form or None, "seed": 1, "file_bytes": FILE_BYTES}
    assert asked.items() <= result.items()
    assert result["seconds"] > 0 and result["calls"] is None
    assert result["minor_faults"] + result["major_faults"] > 0
    if result["read_bytes"] is not None:
        assert result["price_bytes"] == result["read_bytes"] + result["read_requests"] * (128 << 10)
    assert (result["outside_bytes"] is not None) == (form == "places")
    assert list(file.parent.iterdir()) == [file]


def test_sizes_follow_from_the_file(probe: Path, file: Path) -> None:
    floors = {
        (case, form): run(probe, "--file", file, *words(case, form))["floor_bytes"] / MIB
        for case, form in (("pieces", "fits"), ("parts", "by-1m"), ("willneed", "hinted"), ("remote", ""))
    }
    # As reported: 384, 256, 24 and 256 MiB.
    assert list(floors.values()) == [12, 8, 0.75, 8]
    openers = run(probe, "--file", file, *words("openers", "each"), "--runners", "8")
    assert openers["runners"] == 8
    assert 0.8 * 8 * 12 * PAGE < openers["floor_bytes"] <= 8 * 12 * PAGE
    restores = run(probe, "--file", file, *words("snapshot"))
    assert restores["floor_bytes"] / FILE_BYTES == pytest.approx(1 - 0.89**9, rel=0.02)


def test_seeds(probe: Path, file: Path) -> None:
    first, again, other = (
        run(probe, "--file", file, *words("writes"), "--seed", seed)["floor_bytes"] for seed in "112"
    )
    assert first == again
    assert run(probe, "--file", file, *words("snapshot"), "--seed", "3")["seed"] == 3
    assert other <= 250 * PAGE


def test_only_what_is_shared_is_written(probe: Path, file: Path) -> None:
    before = file.read_bytes()
    run(probe, "--file", file, *words("snapshot"))
    assert file.read_bytes() == before
    run(probe, "--file", file, *words("writes"), "--seed", "77")
    changed = [at for at in range(0, FILE_BYTES, PAGE) if file.read_bytes()[at : at + PAGE] != before[at : at + PAGE]]
    assert 200 < len(changed) <= 250


@pytest.mark.parametrize("form", ["4k", "400k", "regions", "singles", "empty"])
def test_calls_that_change_protection(probe: Path, file: Path, form: str) -> None:
    result = run(probe, "--file", file, *words("protect", form))
    assert result["calls"] == (40 * 2048 if form == "empty" else 40 * 64)
    assert 0 < result["undisturbed_seconds"] <= result["seconds"]
    assert result["floor_bytes"] is result["runners"] is None


def test_a_process_that_fails_ends_all_that_wait_for_it(probe: Path, file: Path) -> None:
    argv = ["prlimit", f"--as={FILE_BYTES // 2}", str(probe), "--file", str(file), *words("openers", "each")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    said = done.stderr.splitlines()
    assert {f"reports: {file}: Cannot allocate memory.", "reports: A process that touches pages has failed."} == {*said}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--case is missing; see --help."),
        (words("openers", "each"), "--file is missing; see --help."),
        ([*words("writes"), "--file", "f", "now"], "'now' is not an option; see --help."),
        ([*words("late"), "--file", "f"], "--case has no value 'late'; see --help."),
        ([*words("parts", "late"), "--file", "f"], "--form has no value 'late'; see --help."),
        ([*words("parts"), "--file", "f"], "--case parts needs --form."),
        ([*words("parts", "fits"), "--file", "f"], "--case parts has no --form fits."),
        ([*words("writes", "fits"), "--file", "f"], "--case writes has no --form fits."),
        ([*words("writes"), "--runners", "2", "--file", "f"], "--case writes has no --runners."),
        ([*words("remote"), "--runners", "0", "--file", "f"], "--runners takes a number of at least 1, not '0'."),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"reports: {sentence}")


def test_files_that_cannot_be_used(probe: Path, tmp_path: Path, file: Path) -> None:
    assert failed(probe, *words("writes"), "--file", "/no/file") == (1, "reports: /no/file: No such file or directory.")
    small = tmp_path / "small"
    small.write_bytes(bytes(1023 * PAGE))
    assert failed(probe, *words("writes"), "--file", small) == (1, f"reports: {small} holds less than 1024 pages.")
    (file.parent / "file.sparse").touch()
    try:
        sentence = f"reports: {file}.sparse: File exists."
        assert failed(probe, *words("stranger", "beside"), "--file", file) == (1, sentence)
        assert (file.parent / "file.sparse").exists()
    finally:
        (file.parent / "file.sparse").unlink()

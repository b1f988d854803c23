# SPDX-License-Identifier: GPL-2.0-only
"""The probe by itself on this machine; test_mprotect_in_guests.py has it where there is all that it wants."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.guest.program import MIB, PAGE, THP, failed, failed_as_nobody, needs_root, run
from tests.processes import wait_until

PROBE = "mprotect"
KEYS = [
    "probe",
    "case",
    "bytes",
    "rounds",
    "threads",
    "page_size",
    "folio_bytes",
    "right_folios",
    "calls",
    "ptes_visited",
    "seconds",
    "protect_seconds",
    "restore_seconds",
    "undisturbed_seconds",
    "touch_seconds",
    "undisturbed_touch_seconds",
    "ptes_touched",
    "tlb_flushes",
    "tlb_flushes_per_mib",
    "batches",
    "batch_length",
    "batched_share",
]


@needs_root
def test_the_result_says_all(probe: Path) -> None:
    result = run(probe, "--case", "T3", "--bytes", str(1000 * PAGE - 1), "--rounds", "3")
    assert list(result) == KEYS
    asked = {"case": "T3", "bytes": 1000 * PAGE, "rounds": 3, "page_size": PAGE, "folio_bytes": PAGE}
    assert asked.items() <= result.items()
    assert (result["calls"], result["ptes_visited"], result["touch_seconds"]) == (6, 6000, None)
    assert result["seconds"] == pytest.approx(result["protect_seconds"] + result["restore_seconds"], abs=2e-9)
    assert 0 < result["undisturbed_seconds"] <= result["seconds"] < 10
    assert result["right_folios"] > 0.95


@needs_root
def test_touches_are_told_apart(probe: Path) -> None:
    result = run(probe, "--case", "shared-dirty", "--bytes", "1M", "--rounds", "2")
    assert (result["ptes_visited"], result["ptes_touched"]) == (4 * MIB // PAGE, 2 * MIB // PAGE)
    assert 0 < result["undisturbed_touch_seconds"] <= result["touch_seconds"] < 10


@needs_root
@pytest.mark.parametrize(
    ("arguments", "calls", "pages"),
    [
        (("none", "--bytes", "4K"), 64, 1),
        (("none", "--bytes", "16M"), 2, 4096),
        (("none", "--bytes", "8K", "--threads", "3"), 192, 2),
        (("regions",), 64, 123),
        (("regions", "--threads", "16"), 1024, 123),
        (("singles",), 512, 1),
        (("empty",), 2048, 16),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
@pytest.mark.skipif(PAGE != 4096, reason="these are pages of 4 KiB")
def test_rounds_of_calls(probe: Path, arguments: tuple[str, ...], calls: int, pages: int) -> None:
    """So many calls of all threads make a round, and each changes so many pages."""
    result = run(probe, "--case", *arguments, "--rounds", "3")
    assert (result["calls"], result["ptes_visited"]) == (3 * calls, 3 * calls * pages)
    assert 0 < result["undisturbed_seconds"] <= result["seconds"] == result["protect_seconds"] < 10
    assert (result["restore_seconds"], result["right_folios"] > 0.95) == (0, True)


@needs_root
def test_a_file_of_one_s_own(probe: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine" * (MIB // 4))
    arguments = ["--case", "private-file", "--file", str(file), "--bytes"]
    assert run(probe, *arguments, "1M")["ptes_visited"] == 8 * MIB // PAGE
    assert file.read_bytes() == b"mine" * (MIB // 4)
    assert failed(probe, *arguments, "2M") == (1, f"mprotect: {file} holds less than {2 * MIB} bytes.")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--case is missing; see --help."),
        (["--case", "T4"], "--case has no value 'T4'; see --help."),
        (["--case", "T3", "more"], "'more' is not an option; see --help."),
        (["--case", "T3", "--rounds", "0"], "--rounds takes a number of at least 1, not '0'."),
        (["--case", "T3", "--bytes", "lots"], "--bytes takes a number of at least 1, not 'lots'."),
        (["--case", "T2", "--folio", "64K"], "--folio is not for --case T2."),
        (["--case", "shared-dirty", "--folio", "64K"], "--folio is not for --case shared-dirty."),
        (["--case", "empty", "--folio", "64K"], "--folio is not for --case empty."),
        (["--case", "T3", "--threads", "2"], "--threads is not for --case T3."),
        (["--case", "empty", "--threads", "65"], "--threads goes up to 64."),
        (["--case", "swap"], "--case swap needs --swap; see --help."),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"mprotect: {sentence}")


def test_odd_folios(probe: Path) -> None:
    status, sentence = failed(probe, "--case", "T3", "--folio", "48K")
    assert (status, sentence[:45]) == (2, "mprotect: --folio takes a power of two up to ")


def test_it_needs_root(probe: Path) -> None:
    sentence = "mprotect: Only root may see in which folios memory is; run this as root."
    assert failed_as_nobody(probe, "--case", "T3") == (1, sentence)


def host_settings() -> dict[Path, str]:
    return {path: path.read_text() for path in THP.glob("hugepages-*/enabled")}


@needs_root
@pytest.mark.skipif(not host_settings(), reason="this kernel has no sizes of folios for anonymous memory")
def test_who_is_asked_to_end_puts_settings_back(probe: Path) -> None:
    before = host_settings()
    arguments = ["--case", "T2", "--bytes", "1M", "--rounds", "1000000000"]
    with subprocess.Popen([probe, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert wait_until(lambda: host_settings() != before or running.poll() is not None)
        assert running.poll() is None
        running.terminate()
        assert running.communicate(timeout=30) == (b"", b"")
    assert running.returncode == -signal.SIGTERM
    assert host_settings() == before


@needs_root
def test_a_result_that_nobody_reads_is_complained_about(probe: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    argv = [str(probe), "--case", "T3", "--bytes", "1M", "--rounds", "1"]
    done = subprocess.run(argv, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"mprotect: The result could not be written: Broken pipe.\n")

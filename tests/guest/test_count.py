# SPDX-License-Identifier: GPL-2.0-only
"""What a processor and the kernel count of a program."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from foliolab.vm.counted import HARDWARE
from tests.guest.program import PAGE, failed

PROBE = "count"

PAGES = 2000


def counted(probe: Path, place: Path, *command: str | Path) -> tuple[dict[str, Any], int]:
    """The counts of a command, and its exit status as a shell has it."""
    file = place / "counts"
    done = subprocess.run([probe, "--to", file, "--", *command], capture_output=True, check=False)
    return json.loads(file.read_text()), done.returncode


def toucher(programs: dict[str, Path], place: Path) -> list[str]:
    """A command that touches some pages, once each at least."""
    file = place / "touched"
    file.write_bytes(bytes(PAGES * PAGE))
    return [str(programs["sparse-mmap"]), "--file", str(file), "--hint", "random", "--fraction", "1"]


@pytest.fixture
def kernel_counts(probe: Path, tmp_path: Path) -> None:
    """Skip where not even what the kernel counts itself may be read."""
    counts, _ = counted(probe, tmp_path, "true")
    if counts["page_faults"] is None:
        pytest.skip(f"perf_event_open: {counts['reason']}")


@pytest.mark.usefixtures("kernel_counts")
def test_counts_are_of_the_program_and_all_that_it_starts(
    probe: Path, programs: dict[str, Path], tmp_path: Path
) -> None:
    command = toucher(programs, tmp_path)
    none, _ = counted(probe, tmp_path, "true")
    one, status = counted(probe, tmp_path, *command)
    script = '"$@" > /dev/null & "$@" > /dev/null; wait'
    two, _ = counted(probe, tmp_path, "sh", "-c", script, "sh", *command)
    assert status == 0
    assert none["page_faults"] < PAGES / 4
    assert one["page_faults"] > PAGES / 16, "a fault maps 16 pages at most"
    # The shell and its children fault a few times themselves.
    assert 2 * one["page_faults"] <= two["page_faults"] + 200
    assert two["page_faults"] < 2 * one["page_faults"] + 1000


def test_what_is_not_counted_is_null_with_a_reason(probe: Path, tmp_path: Path) -> None:
    counts, _ = counted(probe, tmp_path, "true")
    assert counts.keys() == {*HARDWARE, "page_faults", "reason"}
    nulls = [name for name, value in counts.items() if value is None]
    assert bool(nulls) is bool(counts["reason"])
    if counts["cpu_instructions"] is not None:
        assert counts["cpu_instructions"] > 10_000


@pytest.mark.parametrize(("command", "status"), [("exit 3", 3), ("kill -9 $$", -9)])
def test_the_status_is_the_program_s(probe: Path, tmp_path: Path, command: str, status: int) -> None:
    assert counted(probe, tmp_path, "sh", "-c", command)[1] == status


def test_a_program_that_is_not_there(probe: Path, tmp_path: Path) -> None:
    status, sentence = failed(probe, "--to", tmp_path / "counts", "--", "/none/such")
    assert (status, sentence) == (127, "count: /none/such: No such file or directory.")
    assert failed(probe, "--to", tmp_path / "counts") == (2, "count: PROGRAM is missing; see --help.")

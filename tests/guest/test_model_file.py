# SPDX-License-Identifier: GPL-2.0-only
"""The probe by itself on this machine."""

from pathlib import Path

import pytest

from tests.guest.program import PAGE, failed, random_file, run

PROBE = "model-file"
PAGES = 4096


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return random_file(tmp_path / "model", PAGES)


def test_load_reads_the_file_once_with_any_hint(probe: Path, file: Path) -> None:
    normal, random = (run(probe, "--file", file, "--hint", hint) for hint in ("normal", "random"))
    asked = {"probe": "model-file", "phase": "load", "hint": "normal", "file_bytes": PAGES * PAGE}
    assert asked.items() <= normal.items()
    # A page for each fault, however wide the window is.
    assert random["major_faults"] == PAGES
    assert normal["major_faults"] < PAGES / 8


def test_tensors_are_there_where_the_load_fits_into_memory(probe: Path, file: Path) -> None:
    found = run(probe, "--file", file, "--phase", "experts", "--tensor", "64", "--count", "5", "--seed", "3")
    assert {"phase": "experts", "tensor": 64, "count": 5, "seed": 3, "major_faults": 0}.items() <= found.items()


def test_bad_input_gets_a_sentence(probe: Path, file: Path) -> None:
    assert failed(probe) == (2, "model-file: --file is missing; see --help.")
    assert failed(probe, "--file", file, "--phase", "x") == (2, "model-file: --phase has no value 'x'; see --help.")
    assert failed(probe, "--file", "/nowhere") == (1, "model-file: /nowhere: No such file or directory.")
    status, sentence = failed(probe, "--file", file, "--tensor", str(PAGES + 1))
    assert (status, sentence) == (1, f"model-file: {file} holds no tensor of {PAGES + 1} pages.")

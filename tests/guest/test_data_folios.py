# SPDX-License-Identifier: GPL-2.0-only
"""The probe by itself on this machine."""

from pathlib import Path

import pytest

from tests.guest.program import PAGE, failed, failed_as_nobody, needs_root, random_file, run

PROBE = "data-folios"
PAGES = 2048


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return random_file(tmp_path / "data", PAGES)


@needs_root
@pytest.mark.parametrize(
    ("order", "touched"), [("forward", PAGES), ("reverse", PAGES), ("dense", PAGES), ("blocks", PAGES // 2)]
)
def test_what_is_touched_is_mapped(order: str, touched: int, probe: Path, file: Path) -> None:
    first, second = (run(probe, "--file", file, "--order", order, "--pass", each) for each in ("first", "second"))
    assert {
        "order": order,
        "pass": "first",
        "file_bytes": PAGES * PAGE,
        "floor_bytes": touched * PAGE,
    }.items() <= first.items()
    assert {"pass": "second", "floor_bytes": 0, "major_faults": 0}.items() <= second.items()
    for found in (first, second):
        assert touched * PAGE <= found["mapped_bytes"] <= found["cached_bytes"] <= PAGES * PAGE
        assert 0 <= found["contpte_share"] <= 1
        assert 0 <= found["large_folio_share"] <= 1


def test_bad_input_gets_a_sentence(probe: Path, file: Path, tmp_path: Path) -> None:
    assert failed(probe) == (2, "data-folios: --file is missing; see --help.")
    assert failed(probe, "--file", file, "--order", "x") == (2, "data-folios: --order has no value 'x'; see --help.")
    assert failed(probe, "--file", "/nowhere") == (1, "data-folios: /nowhere: No such file or directory.")
    (tmp_path / "small").write_bytes(b"x")
    small = tmp_path / "small"
    assert failed(probe, "--file", small) == (1, f"data-folios: {small} is too small.")


@needs_root
def test_only_root_may_know(probe: Path) -> None:
    status, sentence = failed_as_nobody(probe, "--file", "/bin/sh")
    assert (status, sentence) == (1, "data-folios: Only root may see in which folios memory is; run this as root.")

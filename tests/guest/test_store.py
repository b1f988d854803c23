# SPDX-License-Identifier: GPL-2.0-only
"""What the probe says of what it cannot do; what it measures is tested with the disks that it is for."""

from pathlib import Path

import pytest

from tests.guest.program import failed

PROBE = "store"
LMDB = ["--store", "lmdb"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--store is missing; see --help."),
        (LMDB, "--workload is missing; see --help."),
        (["--store", "oracle"], "--store has no value 'oracle'; see --help."),
        ([*LMDB, "--workload", "sql"], "--workload has no value 'sql'; see --help."),
        ([*LMDB, "--workload", "open", "now"], "'now' is not an option; see --help."),
        ([*LMDB, "--workload", "open", "--hint", "random"], "--hint has no value 'random'; see --help."),
        ([*LMDB, "--workload", "open", "--times", "0"], "--times takes a number of at least 1, not '0'."),
        ([*LMDB, "--workload", "open", "--records", "9"], "--records is for --workload build."),
        (
            [*LMDB, "--workload", "open", "--read_ahead_kb", "x"],
            "--read_ahead_kb takes a number of at least 0, not 'x'.",
        ),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"store: {sentence}")


def test_databases_that_cannot_be_used(probe: Path, tmp_path: Path) -> None:
    words = [*LMDB, "--workload", "open", "--data", str(tmp_path)]
    assert failed(probe, *words) == (1, f"store: {tmp_path}/lmdb: No such file or directory.")
    (tmp_path / "lmdb").mkdir()
    assert failed(probe, *words) == (1, f"store: {tmp_path}/lmdb/records: No such file or directory.")
    (tmp_path / "lmdb/records").write_text("many\n")
    assert failed(probe, *words) == (1, f"store: {tmp_path}/lmdb/records holds no number.")
    (tmp_path / "lmdb/records").write_text("10\n")
    assert failed(probe, *words) == (1, "store: A database of 10 records is too small.")

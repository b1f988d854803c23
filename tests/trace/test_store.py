# SPDX-License-Identifier: GPL-2.0-only
"""Recording storage engines, and what was measured of them."""

from pathlib import Path
from typing import Any

import pytest

from foliolab.arch import NATIVE
from foliolab.campaign.store import open_store, store_file
from foliolab.cli.main import main
from foliolab.progress import Reporter
from foliolab.stores.catalogue import store_disk
from foliolab.trace.format import read_trace
from tests.samples import sample

CELL = {"store": "lmdb", "workload": "uniform", "read_ahead_kb": 128, "hint": "none", "times": 2}
METRICS = {"read_bytes": 5 << 20, "read_requests": 70, "major_faults": 60, "cached_bytes": 100 << 20}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--store", "oracle", "--workload", "open"], "'stores' has no workload 'open' of 'oracle' with --times 2."),
        (["--store", "git", "--workload", "update"], "'stores' has no workload 'update' of 'git' with --times 2."),
        (["--store", "lmdb", "--workload", "open", "--times", "3"], "no workload 'open' of 'lmdb' with --times 3."),
        (["--store", "lmdb", "--workload", "open", "-o", "/nowhere"], "There is no directory /nowhere."),
    ],
)
def test_what_cannot_be_recorded(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "store", "-o", str(tmp_path), *words]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.boot
def test_a_store_is_recorded_with_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path))
    plain: dict[str, Any] = {"experiment": "stores", "scale": "full", "metrics": METRICS}
    plain["arch"] = NATIVE.name
    plain["data"] = store_disk(NATIVE, "lmdb", Reporter()).hash
    with open_store(store_file()) as store:
        store.append(sample(cell=CELL, **plain))
        store.append(sample(cell=CELL | {"read_ahead_kb": 4096}, **plain))
        store.append(sample(cell=CELL | {"hint": "own"}, **plain))
        store.append(sample(cell=CELL | {"workload": "zipf"}, **plain))
        store.append(sample(cell=CELL, repetition=2, **plain))
        store.append(sample(cell=CELL, **plain | {"data": "another", "variant": "adaptive"}))
    assert main(["trace", "store", "--store", "lmdb", "--workload", "uniform", "-o", str(tmp_path)]) == 0
    trace = read_trace(tmp_path / "lmdb-uniform.trace")
    assert {(each.variant, each.read_ahead_kb) for each in trace.measured} == {("off", 128), ("off", 4096)}
    assert {each.memory_bytes for each in trace.measured} == {100 << 20}
    (data,) = (number for number, file in enumerate(trace.files) if file.name.endswith("data.mdb"))
    # Each lookup reads the path to a leaf, of which only the leaf, or its neighbour, is new.
    assert 1000 <= trace.touches_by_file()[data] <= 4000
    assert trace.lost == 0
    capsys.readouterr()
    assert main(["trace", "replay", "--json", "--variant", "off", str(tmp_path / "lmdb-uniform.trace")]) == 0
    assert '"recorded": {"read_bytes": 5242880' in capsys.readouterr().out

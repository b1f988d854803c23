# SPDX-License-Identifier: GPL-2.0-only
"""Recording storage engines, and what was measured with the same accesses."""

from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foliohost.trace import Trace, read_trace
from foliolab.analyse.measured import store_groups, with_measured
from foliolab.campaign.store import open_store, store_file
from foliolab.cli.main import main
from foliolab.disks.stores import store_disk
from tests.machines import ARM64_4K
from tests.samples import sample

CELL = {"store": "lmdb", "workload": "uniform", "read_ahead_kb": 128, "hint": "none", "times": 2}
LOOK_UPS = ("--store", "lmdb", "--workload", "uniform")
METRICS = {"read_bytes": 5 << 20, "read_requests": 70, "major_faults": 60, "cached_bytes": 100 << 20}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--store", "oracle", "--workload", "open"], "'stores' has no workload 'open' of 'oracle'."),
        (["--store", "git", "--workload", "update"], "'stores' has no workload 'update' of 'git'."),
        (["--store", "lmdb", "--workload", "open", "-o", "/nowhere"], "There is no directory /nowhere."),
    ],
)
def test_what_cannot_be_recorded(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "store", "-o", str(tmp_path), *words]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.boot
def test_a_store_is_recorded_and_replayed_beside_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path))
    plain: dict[str, Any] = {"experiment": "stores", "scale": "full", "metrics": METRICS}
    arch = ARM64_4K.arch
    plain["arch"] = arch.name
    plain["data"] = store_disk(arch, "lmdb").hash
    with open_store(store_file()) as store:
        store.append(sample(cell=CELL, **plain))
    assert main(["trace", "store", "--arch", arch.name, *LOOK_UPS, "-o", str(tmp_path)]) == 0
    trace = read_trace(tmp_path / "lmdb-uniform.trace")
    assert trace.other["data"] == plain["data"]
    (data,) = (number for number, file in enumerate(trace.files) if file.name.endswith("data.mdb"))
    # Each lookup reads the path to a leaf, of which only the leaf, or its neighbour, is new.
    assert 1000 <= trace.touches_by_file()[data] <= 4000
    assert trace.lost == 0
    capsys.readouterr()
    assert main(["trace", "replay", "--json", "--variant", "off", str(tmp_path / "lmdb-uniform.trace")]) == 0
    assert '"recorded": {"read_bytes": 5242880' in capsys.readouterr().out


def test_what_was_measured_with_the_same_accesses_stands_beside_a_trace() -> None:
    words = "--data /data --seed 1 --store lmdb --workload uniform --read_ahead_kb 128 --hint none --times 2"
    trace = Trace(
        files=(),
        file_of=array("I"),
        page_of=array("I"),
        window=16,
        memory_bytes=120 << 20,
        program=("store", *words.split()),
        other={"data": "d"},
    )
    same: dict[str, Any] = {"experiment": "stores", "scale": "full", "metrics": METRICS, "data": "d", "variant": "off"}
    samples = [
        sample(cell=CELL, **same),
        sample(cell=CELL | {"read_ahead_kb": 4096}, **same | {"metrics": METRICS | {"cached_bytes": 130 << 20}}),
        sample(cell=CELL | {"hint": "own"}, **same),
        sample(cell=CELL | {"workload": "zipf"}, **same),
        sample(cell=CELL | {"times": 5}, **same),
        sample(cell=CELL, repetition=2, **same),
        sample(cell=CELL, **same | {"data": "another", "variant": "adaptive"}),
        sample(cell=CELL, **same | {"outcome": "panic", "variant": "published"}),
        sample(cell=CELL, **same | {"scale": "quick", "variant": "adaptive"}),
    ]
    found = with_measured(trace, store_groups(samples)).measured
    places = [(each.variant, each.read_ahead_kb, each.memory_bytes) for each in found]
    assert places == [("off", 128, 120 << 20), ("off", 4096, 130 << 20)]
    assert {(each.read_bytes, each.read_requests, each.major_faults) for each in found} == {(5 << 20, 70, 60)}
    on_arm64 = store_groups([*samples, sample(cell=CELL, **same | {"arch": "arm64", "data": "of another machine"})])
    assert with_measured(trace, on_arm64).measured == found
    of_16k = replace(trace, page_size=16384)
    another = replace(trace, program=("driver", *trace.program[1:]))
    assert [with_measured(each, store_groups(samples)).measured for each in (of_16k, another)] == [(), ()]

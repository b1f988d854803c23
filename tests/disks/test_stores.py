# SPDX-License-Identifier: GPL-2.0-only
"""Databases that engines make in a guest, and every workload on them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import ARM64, NATIVE
from foliolab.disks import stores
from foliolab.disks.stores import store_disk
from foliolab.errors import UsageError
from foliolab.experiment.load import find_experiment
from foliolab.files import GUEST
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.accel import choose
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from tests.disks.driver import TOOLS
from tests.disks.test_drivers import FILES

ENGINES = tuple(store for store in FILES if store not in TOOLS or shutil.which(TOOLS[store]))
"""Those that this machine can make."""
RECORDS = 4000


def test_an_unknown_store_is_named() -> None:
    with pytest.raises(UsageError, match=r"There is no store 'oracle'; known: lmdb, mdbx, bbolt, sqlite, lucene, git"):
        store_disk(NATIVE, "oracle")


def test_the_hash_covers_what_is_put_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    made = stores.StoreDisk(NATIVE, "lmdb", {"a": one, "b": other}, records=9)
    assert replace(made, drivers={"b": other, "a": one}).hash == made.hash
    variations = [
        replace(made, drivers={"a": one}),
        replace(made, drivers={"b": one, "a": other}),
        replace(made, records=8),
        replace(made, store="mdbx"),
        replace(made, arch=ARM64),
        replace(made, database=one),
        replace(made, database=other),
    ]
    hashes = {made.hash, *(each.hash for each in variations)}
    for name in stores._HARNESS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(GUEST / name, tmp_path / name)
    monkeypatch.setattr(stores, "GUEST", tmp_path)
    assert made.hash in hashes
    (tmp_path / "windows/store.c").write_text("something else")
    hashes.add(made.hash)
    assert len(hashes) == len(variations) + 2


@pytest.mark.boot
def test_every_workload_of_every_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patched_kernel: BuiltKernel
) -> None:
    image = initramfs(guest_programs(NATIVE))
    bare = GuestConfig(NATIVE, patched_kernel.image, image, choose(NATIVE), memory_mib=512)
    chosen = [replace(store_disk(NATIVE, name), records=RECORDS) for name in ENGINES]
    disks = stores.prepare(chosen, bare)
    known = {
        store: {
            str(cell.as_dict()["workload"])
            for cell in find_experiment("stores").scales["full"].cells
            if cell.as_dict()["store"] == store
        }
        for store in ENGINES
    }
    read: dict[tuple[str, str], int] = {}
    with Guest(replace(bare, disks=tuple(disks)), tmp_path / "console") as guest:
        for job in stores.mounts(chosen, guest.config):
            guest.run(job).checked()
        for store in ENGINES:
            for workload in sorted(known[store]):
                words = ["store", "--store", store, "--workload", workload, "--read_ahead_kb", "128"]
                result = json.loads(guest.run(words).checked().stdout)
                read[store, workload] = result["read_bytes"]
                assert 0 < result["peak_memory_bytes"] <= result["memory_bytes"]
                assert result["price_bytes"] == result["read_bytes"] + (result["read_requests"] << 17)
            again = json.loads(guest.run([*words[:4], "open", "--hint", "own"]).checked().stdout)
            assert again["read_bytes"] < read[store, "open"]
    for store in ENGINES:
        # Ten lookups read little, all records all of the database, which takes more than they do.
        assert read[store, "open"] < read[store, "uniform"]
        assert read[store, "forward"] > RECORDS * 1000

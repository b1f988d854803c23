# SPDX-License-Identifier: GPL-2.0-only
"""Our series for later kernels: it applies, is built, boots, and does there what it does on 6.12."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.debian import from_debian
from foliolab.kernel.series import changed_files, read_series
from foliolab.paths import KERNEL
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import splats
from tests.kernel.selftests import check_kunit

VERSION = "7.3"
ADAPTIVE = "/sys/kernel/mm/mmap_readahead/adaptive"
TOUCHES, STRIDE = 200, 1021


def test_the_policy_is_the_one_of_6_12() -> None:
    source = from_debian(VERSION, Reporter())
    changed = changed_files(source, read_series(source.version))
    for part in ("window", "prior"):
        file = f"include/linux/mmap_readahead_{part}.h"
        assert changed[file] == (KERNEL / "files" / file).read_bytes()
    assert b"mmap_readahead_adapted(vmf" in changed["mm/filemap.c"]


@pytest.mark.boot
def test_sparse_access_reads_what_it_touches(tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, f"debian:{VERSION}+ours", extras=("kunit",)), Reporter())
    assert kernel.version.startswith(f"{VERSION}.") and kernel.ours
    bare = GuestConfig(NATIVE, kernel.image, initramfs(guest_programs(NATIVE, Reporter())), choose(NATIVE), 1024)
    disk = DataDisk("ext4", TOUCHES * STRIDE * 4096).prepare(bare, Reporter())
    with Guest(replace(bare, disks=(disk,)), tmp_path / "console.log") as guest:
        guest.run([":mount", "/dev/vda", "/data", "ext4", "ro"]).checked()
        guest.run([":write", "/sys/block/vda/queue/read_ahead_kb", "4096"]).checked()
        read = {}
        for adaptive in ("0", "1"):
            guest.run([":write", ADAPTIVE, adaptive]).checked()
            argv = ["sparse-mmap", "--file", DATA_FILE, "--pattern", "stride", "--stride", str(STRIDE)]
            done = guest.run([*argv, "--count", str(TOUCHES), "--drop-caches"], 120).checked()
            read[adaptive] = json.loads(done.stdout)["read_bytes"] // 4096
        print(read)  # for pytest -rP
        assert TOUCHES <= read["1"] < 5 * TOUCHES
        assert read["0"] > 100 * TOUCHES
        console = guest.console()
    check_kunit(console, ("mmap_readahead_window",))
    assert splats(console) == []

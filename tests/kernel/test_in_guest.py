# SPDX-License-Identifier: GPL-2.0-only
"""Our kernel code in booted kernels: the kselftests."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import ARM64
from foliolab.process import tool
from foliolab.vm.disk import Filesystem
from foliolab.vm.guest import Disk
from tests.kernel.selftests import Programs, guest_config, run_selftests
from tests.machines import ARM64_4K, ARM64_16K, ARM64_64K, MACHINES, X86_64_4K, Machine

pytestmark = pytest.mark.boot

XFS_X86_64 = replace(X86_64_4K, extras=("xfs",))
PLACES: list[tuple[Machine, Filesystem]] = [
    *((machine, "ext4") for machine in (*MACHINES, ARM64_16K)),
    *((machine, "xfs") for machine in (XFS_X86_64, ARM64_4K, ARM64_16K, ARM64_64K)),
]
ONLY_DEBUG = "no /dev/fuse|no fault injection"


@pytest.mark.parametrize(("machine", "filesystem"), PLACES, indirect=["machine"], ids=str)
def test_selftests(machine: Machine, filesystem: Filesystem, programs: Programs, tmp_path: Path) -> None:
    config = guest_config(machine.kernel(), programs)
    # One holds pages locked by FUSE, one has reads fail: only the debug kernel can. Large folios are what ext4 has not.
    reasons = ONLY_DEBUG + ("|no large folios" if filesystem == "ext4" else "")
    reasons += "|no soft-dirty" if machine.arch is ARM64 else ""
    if machine.page_size == 65536:
        # The kernel's 64 KiB of fault-around are one page, and huge pages are larger than its largest folio.
        reasons += "|no huge pages in files" if filesystem == "ext4" else ""
        skipped = run_selftests(config, filesystem, tmp_path / "console.log", fault_around_pages=4)
        assert [line for line in skipped if not re.search(reasons, line)] == []
        reasons += "|fault-around is off"
    skipped = run_selftests(config, filesystem, tmp_path / "console.log")
    assert [line for line in skipped if not re.search(reasons, line)] == []


def test_selftests_with_blocks_larger_than_pages(programs: Programs, tmp_path: Path) -> None:
    raw = tmp_path / "disk.raw"
    with raw.open("wb") as stream:
        stream.truncate(512 << 20)
    subprocess.run([tool("mkfs.xfs"), "-q", "-b", "size=16k", str(raw)], check=True)
    config = guest_config(XFS_X86_64.kernel(), programs)
    skipped = run_selftests(config, "xfs", tmp_path / "console.log", disk=Disk(raw, "raw"))
    assert [line for line in skipped if not re.search(ONLY_DEBUG, line)] == []

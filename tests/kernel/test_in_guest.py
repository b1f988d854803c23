# SPDX-License-Identifier: GPL-2.0-only
"""Our kernel code in booted kernels: the kselftests."""

import re
import subprocess
from pathlib import Path

import pytest

from foliolab.arch import ARM64
from foliolab.process import tool
from foliolab.vm.disk import Filesystem
from foliolab.vm.guest import Disk
from tests.kernel.selftests import BRIEF, FAULTS_IN_FILES, SELFTESTS, Programs, guest_config, guest_with_data, run_in
from tests.machines import ARM64_4K, TESTED, X86_64_4K, Machine

pytestmark = pytest.mark.boot

PLACES: list[tuple[Machine, Filesystem]] = [(machine, "ext4" if machine is X86_64_4K else "xfs") for machine in TESTED]
"""x86_64 has one without large folios; with XFS it has the debug kernel."""
ONLY_DEBUG = "no /dev/fuse|no fault injection"
FAULT_AROUND = "/sys/kernel/debug/fault_around_bytes"
FAULT_AROUND_BYTES = 65536


def check(skipped: list[str], reasons: str) -> None:
    assert [line for line in skipped if not re.search(reasons, line)] == []


@pytest.mark.parametrize(("machine", "filesystem"), PLACES, indirect=["machine"], ids=str)
def test_selftests(machine: Machine, filesystem: Filesystem, programs: Programs, tmp_path: Path) -> None:
    # One holds pages locked by FUSE, one has reads fail: only the debug kernel can. Large folios are what ext4 has not.
    reasons = ONLY_DEBUG + ("|no large folios" if filesystem == "ext4" else "")
    reasons += "|no soft-dirty" if machine.arch is ARM64 else ""
    # Brief races take a third of the time. In full they run on arm64 with 4 KiB.
    brief = () if machine == ARM64_4K else tuple(BRIEF)
    with guest_with_data(guest_config(machine.kernel(), programs), filesystem, tmp_path / "console.log") as guest:
        names: tuple[str, ...] = SELFTESTS
        if machine.page_size == FAULT_AROUND_BYTES:  # it is one page here, unless somebody asks for more
            guest.run([":write", FAULT_AROUND, str(4 * FAULT_AROUND_BYTES)]).checked()
            check(run_in(guest, FAULTS_IN_FILES, brief), reasons)
            guest.run([":write", FAULT_AROUND, str(FAULT_AROUND_BYTES)]).checked()
            reasons += "|fault-around is off"
            # Races of these ran above.
            names = tuple(name for name in SELFTESTS if name not in FAULTS_IN_FILES or not name.endswith("_race"))
        check(run_in(guest, names, brief), reasons)


def test_selftests_with_blocks_larger_than_pages(programs: Programs, tmp_path: Path) -> None:
    raw = tmp_path / "disk.raw"
    with raw.open("wb") as stream:
        stream.truncate(512 << 20)
    subprocess.run([tool("mkfs.xfs"), "-q", "-b", "size=16k", str(raw)], check=True)
    config = guest_config(ARM64_4K.kernel(), programs)
    with guest_with_data(config, "xfs", tmp_path / "console.log", Disk(raw, "raw")) as guest:
        # What mprotect() does, and touches of pages, no file system has anything to do with.
        names = [name for name in SELFTESTS if not name.startswith(("mprotect", "page_touch"))]
        check(run_in(guest, names, BRIEF), ONLY_DEBUG)

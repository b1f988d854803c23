# SPDX-License-Identifier: GPL-2.0-only
"""Our kernel code in booted kernels: KUnit and the kselftest."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from foliolab.arch import Architecture
from foliolab.kernel.build import BuiltKernel
from foliolab.kernel.source import Source
from foliolab.paths import KERNEL
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.disk import DATA_FILE, DataDisk, Filesystem
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import splats
from tests.machines import ARM64_16K, MACHINES, Machine

pytestmark = pytest.mark.boot


Programs = Callable[[Architecture], dict[str, Path]]


@pytest.fixture(scope="session")
def programs(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The kselftest, and the programs of this directory, by name, for an architecture; all static."""
    tools = source.tree / "tools"
    selftest = KERNEL / "files/tools/testing/selftests/mm/mmap_readahead.c"
    includes = [f"-I{tools / 'testing/selftests/mm'}", f"-I{tools / 'testing/selftests'}", f"-I{tools / 'include'}"]

    @cache
    def made(arch: Architecture) -> dict[str, Path]:
        place = tmp_path_factory.mktemp(f"programs-{arch.name}")
        for code in (selftest, *(Path(__file__).parent / "programs").glob("*.c")):
            # As the selftests' own Makefile does, where <kselftest.h> is "../kselftest.h".
            command = [arch.compiler, "-O2", "-Wall", "-Werror", "-static", "-pthread", *includes, "-x", "c", "-"]
            text = code.read_text().replace('"../kselftest.h"', "<kselftest.h>")
            subprocess.run([*command, "-o", str(place / code.stem)], input=text.encode(), check=True)
        return {path.name: path for path in place.iterdir()}

    return made


def guest_config(kernel: BuiltKernel, programs: Programs, memory_mib: int = 1024) -> GuestConfig:
    arch = kernel.arch
    extra = {f"/bin/{name}": path for name, path in programs(arch).items()}
    archive = initramfs(guest_programs(arch, Reporter()), extra)
    return GuestConfig(arch, kernel.image, archive, choose(arch), memory_mib=memory_mib, cpus=2)


def ktap(output: str) -> tuple[list[str], list[str]]:
    """The tests of a KTAP report that passed and those that did not; skipped ones count as passed."""
    lines = [line.strip() for line in output.splitlines()]
    passed = [line for line in lines if re.match(r"ok \d", line)]
    failed = [line for line in lines if re.match(r"not ok \d|Bail out!", line)]
    return passed, failed


def run_selftest(config: GuestConfig, filesystem: Filesystem, console: Path, fault_around_pages: int = 0) -> list[str]:
    """Run the kselftest on ``filesystem``; returns the lines of what it skipped.

    Without ``fault_around_pages``, fault-around stays as the kernel has it.
    """
    disk = DataDisk(filesystem, 256 << 20).prepare(config, Reporter())
    with Guest(replace(config, disks=(disk,)), console) as guest:
        guest.run([":mount", "/dev/vda", "/data", filesystem]).checked()
        guest.run([":write", DATA_FILE, ""]).checked()  # the test makes a file of its own, in that one's room
        # A window of fewer than 16 pages, as by default with large ones, may have its mark for the next one in the
        # very folio of the fault, and then fault-around leaves that to filemap_fault().
        window_kb = max(128, 16 * guest.ready.page_size >> 10)
        guest.run([":write", "/sys/block/vda/queue/read_ahead_kb", str(window_kb)]).checked()
        if fault_around_pages:
            bytes_around = str(fault_around_pages * guest.ready.page_size)
            guest.run([":write", "/sys/kernel/debug/fault_around_bytes", bytes_around]).checked()
        # The test works in the current directory, as kselftests do.
        done = guest.run(["in-directory", "/data", "mmap_readahead"], 300)
        output = done.stdout.decode()
        passed, failed = ktap(output)
        assert (failed, done.status) == ([], 0), output
        assert len(passed) >= 20, output
        assert splats(guest.console()) == []
    return [line for line in passed if "# SKIP" in line]


PLACES = [
    (machine, filesystem)
    for machine in (*MACHINES, ARM64_16K)
    for filesystem in ("ext4", "xfs")
    if filesystem in ("ext4", *machine.extras)
]


@pytest.mark.parametrize(("machine", "filesystem"), PLACES, indirect=["machine"], ids=str)
def test_selftest(machine: Machine, filesystem: Filesystem, programs: Programs, tmp_path: Path) -> None:
    config = guest_config(machine.kernel(), programs)
    # It holds pages locked by FUSE, which only the debug kernel has.
    reasons = "no /dev/fuse"
    if machine.page_size == 65536:
        # The kernel's 64 KiB of fault-around are one page, and huge pages are larger than its largest folio.
        reasons += "|no huge pages in files"
        skipped = run_selftest(config, filesystem, tmp_path / "console.log", fault_around_pages=4)
        assert [line for line in skipped if not re.search(reasons, line)] == []
        reasons += "|fault-around is off"
    skipped = run_selftest(config, filesystem, tmp_path / "console.log")
    assert [line for line in skipped if not re.search(reasons, line)] == []


@pytest.mark.debug
@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_selftest_on_the_debug_kernel(
    filesystem: Filesystem, debug_kernel: BuiltKernel, programs: Programs, tmp_path: Path
) -> None:
    assert run_selftest(guest_config(debug_kernel, programs), filesystem, tmp_path / "console.log") == []


@pytest.mark.debug
def test_kunit(debug_kernel: BuiltKernel, programs: Programs, tmp_path: Path) -> None:
    with Guest(guest_config(debug_kernel, programs), tmp_path / "console.log") as guest:
        console = guest.console()
    report = re.sub(r"^\[ *\d+\.\d+\] ?", "", console.replace("\r", ""), flags=re.MULTILINE)
    suite = report[report.index("# Subtest: mmap_readahead") :]
    passed, failed = ktap(suite)
    assert failed == []
    assert re.search(r"^ok \d+ mmap_readahead$", suite, re.MULTILINE)
    assert len(passed) >= 15
    assert splats(console) == []

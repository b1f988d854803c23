# SPDX-License-Identifier: GPL-2.0-only
"""Our kernel code in booted kernels: KUnit and the kselftests."""

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from foliolab.arch import ARM64, Architecture
from foliolab.kernel.build import BuiltKernel, KernelRequest, build
from foliolab.kernel.source import Source
from foliolab.paths import KERNEL
from foliolab.process import tool
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.disk import DATA_FILE, DataDisk, Filesystem
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import splats
from tests.machines import ARM64_4K, ARM64_16K, ARM64_64K, MACHINES, X86_64_4K, Machine

pytestmark = pytest.mark.boot


Programs = Callable[[Architecture], dict[str, Path]]


@pytest.fixture(scope="session")
def programs(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The kselftests, and the programs of this directory, by name, for an architecture; all static."""
    ours = KERNEL / "files/tools/testing/selftests/mm"
    shared = sorted(ours.glob("*_util.c"))
    sources = {code: shared for code in ours.glob("*.c") if code not in shared}
    sources |= {code: [] for code in (Path(__file__).parent / "programs").glob("*.c")}
    tools = source.tree / "tools"
    # Where ours include "../kselftest.h", the compiler finds that of the tree beside its selftests.
    includes = [f"-I{place}" for place in (ours, tools / "testing/selftests/mm", tools / "include")]

    @cache
    def made(arch: Architecture) -> dict[str, Path]:
        place = tmp_path_factory.mktemp(f"programs-{arch.name}")
        for code, others in sources.items():
            command = [arch.compiler, "-O2", "-Wall", "-Werror", "-static", "-pthread", *includes]
            subprocess.run([*command, "-o", str(place / code.stem), str(code), *map(str, others)], check=True)
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


SELFTESTS = (
    "fault_recency",
    "fault_recency_race",
    "file_folio",
    "mmap_readahead",
    "mmap_readahead_text",
    "mmap_readahead_race",
    "mprotect_batch",
    "mprotect_batch_random",
    "mprotect_batch_race",
)


def settings(guest: Guest) -> dict[str, str]:
    """All that the kselftests change, as far as this kernel has it: path -> content."""
    sizes = "/sys/kernel/mm/transparent_hugepage"
    places = [
        (sizes, r"hugepages-\d+kB", "/file_enabled"),
        (sizes, r"hugepages-\d+kB", "/enabled"),
        (sizes, r"hugepages-\d+kB", "/shmem_enabled"),
        ("/sys/kernel/mm/lru_gen", r"\w+", ""),
        ("/sys/kernel/mm/mmap_readahead", r"\w+", ""),
        ("/sys/kernel/debug/mprotect", r"\w+", ""),
    ]
    paths = [
        "/proc/swaps",
        "/proc/sys/kernel/numa_balancing",
        "/proc/sys/vm/compaction_proactiveness",
        "/proc/sys/vm/dirty_writeback_centisecs",
        "/proc/sys/vm/page-cluster",
        "/sys/block/vda/queue/read_ahead_kb",
        "/sys/block/vda/queue/rotational",
        "/sys/kernel/mm/ksm/run",
        f"{sizes}/khugepaged/scan_sleep_millisecs",
    ]
    for directory, pattern, file in places:
        names = guest.run([":list", directory]).checked().stdout.decode().split()
        paths += [f"{directory}/{name}{file}" for name in names if re.fullmatch(pattern, name)]
    return {path: guest.run([":read", path]).stdout.decode() for path in paths}


def run_selftests(
    config: GuestConfig, filesystem: Filesystem, console: Path, fault_around_pages: int = 0, disk: Disk | None = None
) -> list[str]:
    """Run the kselftests on ``filesystem``; returns the lines of what they skipped.

    Without ``fault_around_pages``, fault-around stays as the kernel has it.
    """
    skipped = []
    data = disk or DataDisk(filesystem, 256 << 20).prepare(config, Reporter())
    with Guest(replace(config, disks=(data,)), console) as guest:
        guest.run([":mount", "/dev/vda", "/data", filesystem]).checked()
        if not disk:
            guest.run([":write", DATA_FILE, ""]).checked()  # the tests make files of their own, in that one's room
        if fault_around_pages:
            bytes_around = str(fault_around_pages * guest.ready.page_size)
            guest.run([":write", "/sys/kernel/debug/fault_around_bytes", bytes_around]).checked()
        before = settings(guest)
        for selftest in SELFTESTS:
            # The tests work in the current directory, as kselftests do.
            done = guest.run(["in-directory", "/data", selftest], 300)
            output = done.stdout.decode()
            passed, failed = ktap(output)
            assert (failed, done.status) == ([], 0), output
            assert f"\n1..{len(passed)}\n" in output, output
            assert splats(guest.console()) == []
            assert settings(guest) == before, selftest
            skipped += [line for line in passed if "# SKIP" in line]
    return skipped


XFS_X86_64 = replace(X86_64_4K, extras=("xfs",))
PLACES: list[tuple[Machine, Filesystem]] = [
    *((machine, "ext4") for machine in (*MACHINES, ARM64_16K)),
    *((machine, "xfs") for machine in (XFS_X86_64, ARM64_4K, ARM64_16K, ARM64_64K)),
]


@pytest.mark.parametrize(("machine", "filesystem"), PLACES, indirect=["machine"], ids=str)
def test_selftests(machine: Machine, filesystem: Filesystem, programs: Programs, tmp_path: Path) -> None:
    config = guest_config(machine.kernel(), programs)
    # One holds pages locked by FUSE, which only the debug kernel has. Large folios are what ext4 has not.
    reasons = "no /dev/fuse" + ("|no large folios" if filesystem == "ext4" else "")
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
    subprocess.run([tool("mkfs.xfs", "xfsprogs"), "-q", "-b", "size=16k", str(raw)], check=True)
    config = guest_config(XFS_X86_64.kernel(), programs)
    skipped = run_selftests(config, "xfs", tmp_path / "console.log", disk=Disk(raw, "raw"))
    assert [line for line in skipped if "no /dev/fuse" not in line] == []


@pytest.mark.debug
def test_selftests_on_the_debug_kernel(debug_kernel: BuiltKernel, programs: Programs, tmp_path: Path) -> None:
    """On XFS: ext4, without large folios, takes a part of the same paths, and a quarter of an hour."""
    assert run_selftests(guest_config(debug_kernel, programs), "xfs", tmp_path / "console.log") == []


SEQUENCES = os.environ.get("FOLIOLAB_SEQUENCES", "")
"""How many to compare: with thousands, on each machine, this takes hours, and debug kernels for all of them."""


@pytest.mark.debug
@pytest.mark.parametrize("machine", MACHINES if SEQUENCES else [X86_64_4K], indirect=True, ids=str)
def test_random_protections_on_the_debug_kernel(machine: Machine, programs: Programs, tmp_path: Path) -> None:
    """Other sequences than those of the kselftest's default."""
    sequences = int(SEQUENCES or "300")
    kernel = build(KernelRequest(machine.arch, "patched", "debug", ("xfs",), page_size=machine.page_size), Reporter())
    config = guest_config(kernel, programs)
    data = DataDisk("ext4", 256 << 20).prepare(config, Reporter())
    with Guest(replace(config, disks=(data,)), tmp_path / "console.log") as guest:
        guest.run([":mount", "/dev/vda", "/data", "ext4"]).checked()
        guest.run([":write", DATA_FILE, ""]).checked()
        argv = ["in-directory", "/data", "mprotect_batch_random", "--seed", "1000", "--sequences", str(sequences)]
        done = guest.run(argv, 60 + sequences)
        assert done.status == 0, done.stdout.decode()
        assert splats(guest.console()) == []


STRESS_SECONDS = os.environ.get("FOLIOLAB_STRESS_SECONDS", "")
"""How long to go on with reclaim and out-of-memory beside faults: longer than the kselftest's default."""


@pytest.mark.debug
@pytest.mark.skipif(not STRESS_SECONDS, reason="the kselftest alone does it, as one of all; $FOLIOLAB_STRESS_SECONDS")
def test_fault_recency_under_stress_on_the_debug_kernel(
    debug_kernel: BuiltKernel, programs: Programs, tmp_path: Path
) -> None:
    seconds = int(STRESS_SECONDS)
    config = guest_config(debug_kernel, programs)
    data = DataDisk("xfs", 256 << 20).prepare(config, Reporter())
    with Guest(replace(config, disks=(data,)), tmp_path / "console.log") as guest:
        guest.run([":mount", "/dev/vda", "/data", "xfs"]).checked()
        guest.run([":write", DATA_FILE, ""]).checked()
        before = settings(guest)
        # Beside that, it takes two minutes at most for what is late to happen, and for all to end.
        argv = ["in-directory", "/data", "fault_recency_race", "--seconds", str(seconds)]
        done = guest.run(argv, 300 + seconds)
        output = done.stdout.decode()
        print(output)  # counts, for pytest -rP
        passed, failed = ktap(output)
        assert (len(passed), failed, done.status) == (1, [], 0), output
        assert "# SKIP" not in output
        assert splats(guest.console()) == []
        assert settings(guest) == before
        groups = guest.run([":list", "/sys/fs/cgroup"]).checked().stdout.decode().split()
        assert "page_cache_selftest" not in groups


@pytest.mark.debug
def test_kunit(debug_kernel: BuiltKernel, programs: Programs, tmp_path: Path) -> None:
    with Guest(guest_config(debug_kernel, programs), tmp_path / "console.log") as guest:
        console = guest.console()
    report = re.sub(r"^\[ *\d+\.\d+\] ?", "", console.replace("\r", ""), flags=re.MULTILINE)
    for name, least in (("fault_recency", 5), ("mmap_readahead", 15), ("mprotect", 2)):
        suite = re.split(rf"(?m)^ok \d+ {name}$", report[report.index(f"# Subtest: {name}") :])[0]
        passed, failed = ktap(suite)
        assert failed == []
        assert len(passed) >= least
        assert re.search(rf"^ok \d+ {name}$", report, re.MULTILINE)
    assert splats(console) == []

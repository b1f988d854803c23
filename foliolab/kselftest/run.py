# SPDX-License-Identifier: GPL-2.0-only
"""Build the kernel's mm selftests, and run each in a guest of its own."""

import shutil
import struct
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from foliolab import process
from foliolab.arch import Architecture
from foliolab.errors import BuildError
from foliolab.files import cache_directory, digest, digest_files, full_disk_named, locked, results_directory
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.name import stem
from foliolab.kernel.source import Source
from foliolab.kselftest.suite import HUGE_PAGES, Test
from foliolab.packages import fetch, unpack
from foliolab.progress import Reporter
from foliolab.suites.ktap import parse
from foliolab.suites.result import Result, boot_for, kept
from foliolab.vm.accel import Accelerator, choose
from foliolab.vm.disk import DataDisk
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import JobResult

_SKIPPED = 4  # the selftests' exit status
_MEMORY_MIB = 2048
_SWAP_BYTES = 512 << 20
# As lib.mk builds them. khugepaged.c uses what it does not include.
_FLAGS = ("-O2", "-w", "-static", "-pthread", "-U_FORTIFY_SOURCE", "-D_GNU_SOURCE=", "-include", "../kselftest.h")
_SHARED = ("vm_util.c", "thp_settings.c")
_LAYOUT = "2"
"""To be raised when the same program on the same kernel is to be run again: another guest, another reading."""


def build_programs(arch: Architecture, source: Source, tests: Iterable[Test], report: Reporter) -> dict[str, Path]:
    """The programs of ``tests`` from the pristine tree, compiled for ``arch``: name -> path. Cached each by itself."""
    compiler, version = process.compiler(arch)
    code = source.tree / "tools/testing/selftests/mm"
    libraries = {test.program: test.libraries for test in tests}
    sources = digest_files([*code.glob("*.[ch]"), *code.parent.glob("*.h")], code.parent)
    home = cache_directory() / "guest" / f"kselftest-{digest([arch.name, version, *_FLAGS, sources])}"
    with locked(home.with_suffix(".lock")), full_disk_named(home):
        home.mkdir(parents=True, exist_ok=True)
        (home / "local_config.h").touch()  # what check_config.sh writes without liburing
        missing = [name for name in libraries if not (home / name).exists()]
        if missing:
            found = _libraries(arch, home, {library for name in missing for library in libraries[name]}, report)
            includes = ["-I", str(home), "-I", str(source.tree), "-isystem", str(source.tree / "tools/include/uapi")]
            with report.task("compiling the kernel's mm selftests", len(missing)) as task:
                for name in missing:
                    task.note(name)
                    shared = (*_SHARED, "uffd-common.c") if name.startswith("uffd-") else _SHARED
                    links = [*(found if libraries[name] else []), *(f"-l{library}" for library in libraries[name])]
                    # Some make files beside what the compiler calls their source.
                    argv = [compiler, *_FLAGS, *includes, "-o", str(home / "partial"), f"{name}.c", *shared, *links]
                    process.run([*argv, "-lrt", "-lm"], BuildError, cwd=code)
                    (home / "partial").rename(home / name)
                    task.advance()
    return {name: home / name for name in libraries}


def _libraries(arch: Architecture, home: Path, names: set[str], report: Reporter) -> list[str]:
    """Compiler options for static libraries of Debian's, unpacked into the cache."""
    if not names:
        return []
    place = home / "packages"
    shutil.rmtree(place, ignore_errors=True)
    wanted = {f"lib{name}-dev" for name in names}
    for package in fetch(arch, wanted, report):
        if package.file.name.split("_")[0] in wanted:  # the C library is here already
            unpack(package.file, place)
    options = ["-isystem", str(place / "usr/include")]
    for directory in (place / "usr/lib").iterdir():
        options += ["-isystem", str(place / "usr/include" / directory.name), "-L", str(directory)]
    return options


def run_test(
    test: Test, kernel: BuiltKernel, programs: dict[str, Path], report: Reporter, boot: int = 1, *, again: bool = False
) -> Result:
    """The result of one test on one kernel: of a boot, or what an earlier one has left in the results directory."""
    accelerator = choose(kernel.arch)
    key = digest([_LAYOUT, kernel.hash, accelerator.backend, repr(test), programs[test.program].read_bytes()])
    name = "_".join(test.argv).replace("/", "_")
    place = results_directory() / "kselftests" / f"{stem(kernel.name)}-{name}-{key}-{boot}.json"

    def boot_once(log: Path) -> dict[str, str]:
        return _boot(test, _guest(test, kernel, accelerator, programs, report), log)

    return kept(place, boot_once, parse, again=again)


def _guest(
    test: Test, kernel: BuiltKernel, accelerator: Accelerator, programs: dict[str, Path], report: Reporter
) -> GuestConfig:
    if test.nodes > 1:
        accelerator = replace(accelerator, options=(*accelerator.options, *_nodes(test)))
    extra = {f"/bin/{test.program}": programs[test.program]}
    archive = initramfs(guest_programs(kernel.arch, report), extra, kernel.modules)
    config = GuestConfig(kernel.arch, kernel.image, archive, accelerator, memory_mib=_MEMORY_MIB, cpus=test.cpus)
    return replace(config, disks=(DataDisk("ext4", 512 << 20).prepare(config, report), _swap(kernel.page_size)))


def _boot(test: Test, config: GuestConfig, log: Path) -> dict[str, str]:
    printed = {1: bytearray(), 2: bytearray()}

    def perform(guest: Guest) -> JobResult:
        # Where the tests make their files.
        guest.run([":mount", "/dev/vda", "/tmp", "ext4"]).checked()
        guest.run([":write", "/tmp/file", ""]).checked()  # room
        guest.run(["swapon", "/dev/vdb"]).checked()
        if test.huge_mib:
            printed[2].extend(reserve_huge_pages(guest, test.huge_mib).encode())
        for path, value in test.settings:
            guest.run([":write", path, value]).checked()
        # One opens itself by the name it was called by.
        argv = [f"/bin/{test.program}", *test.argv[1:]]
        return guest.run(argv, test.seconds, on_output=lambda stream, data: printed[stream].extend(data))

    return boot_for(test.command, config, log, perform, printed.values(), _SKIPPED)


def reserve_huge_pages(guest: Guest, mib: int) -> str:
    """As many as make ``mib``, or one that is larger; returns a line that says how many there are.

    The kernel reserves what it can. What to do with too few is up to the tests.
    """
    lines = guest.run([":read", "/proc/meminfo"]).checked().stdout.decode().splitlines()
    facts = dict(line.split(":") for line in lines)
    size = int(facts["Hugepagesize"].split()[0])
    count = max(mib * 1024 // size, 1)
    guest.run([":write", HUGE_PAGES, str(count)]).checked()
    got = int(guest.run([":read", HUGE_PAGES]).checked().stdout)
    return f"huge pages of {size} KiB: {got} of {count}\n"


def _nodes(test: Test) -> list[str]:
    """QEMU's options for a machine of several NUMA nodes. The first has all CPUs: they are of one package."""
    options = []
    for node in range(test.nodes):
        options += ["-object", f"memory-backend-ram,id=node{node},size={_MEMORY_MIB // test.nodes}M"]
        options += ["-numa", f"node,memdev=node{node}" + ("" if node else f",cpus=0-{test.cpus - 1}")]
    return options


def _swap(page_size: int) -> Disk:
    """A disk to swap to: nothing but the header that mkswap would write."""
    path = cache_directory() / "disks" / f"swap-{page_size}.raw"
    with locked(path.with_suffix(".lock")):
        if not path.exists():
            with full_disk_named(path), path.with_suffix(".partial").open("wb") as stream:
                stream.seek(1024)  # a version, the number of the last page, and no bad pages
                stream.write(struct.pack("=III", 1, _SWAP_BYTES // page_size - 1, 0))
                stream.seek(page_size - 10)
                stream.write(b"SWAPSPACE2")
                stream.truncate(_SWAP_BYTES)
            path.with_suffix(".partial").rename(path)
    return Disk(path, "raw")

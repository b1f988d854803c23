# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own mm selftests, compiled from its pristine source; kernel/kselftests.toml says which are run."""

import shutil
import struct
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from foliolab import process
from foliolab.apt import fetch, unpack
from foliolab.arch import ARCHITECTURES, Architecture
from foliolab.errors import BuildError
from foliolab.files import KERNEL, cache_directory, digest, digest_files, full_disk_named, locked, made_once
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.name import BASE_VERSION
from foliolab.kernel.source import Source
from foliolab.progress import working
from foliolab.suites.ktap import parse
from foliolab.suites.suite import Call, ForeignSuite, SuiteOptions, chosen
from foliolab.toml import Count, Place, Positive, one_of, read_toml
from foliolab.vm.accel import Accelerator
from foliolab.vm.disk import DataDisk
from foliolab.vm.guest import Disk, Guest, GuestConfig, OnOutput
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.numa import Node, Nodes
from foliolab.vm.outcome import JobResult

_MEMORY_MIB = 2048
_SWAP_BYTES = 512 << 20
# As lib.mk builds them. khugepaged.c uses what it does not include.
_FLAGS = ("-O2", "-w", "-static", "-pthread", "-U_FORTIFY_SOURCE", "-D_GNU_SOURCE=", "-include", "../kselftest.h")
_SHARED = ("vm_util.c", "thp_settings.c")
_HUGE_PAGES = "/proc/sys/vm/nr_hugepages"


class Test(Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a test program, in a guest of its own."""

    command: Annotated[str, Meta(pattern=r"\S")]
    seconds: Positive = 180
    """It may take, on a real machine; the selftests' own limit."""
    huge_mib: Count = 256
    """Of huge pages, if the guest can have them; what run_vmtests.sh reserves."""
    settings: tuple[tuple[str, str], ...] = ()
    """Files of the guest, and what to write to them first."""
    nodes: Positive = 1
    """NUMA nodes of the guest."""
    cpus: Positive = 2
    libraries: tuple[str, ...] = ()
    """From Debian's packages lib...-dev."""
    arches: tuple[Annotated[str, one_of(ARCHITECTURES)], ...] = tuple(ARCHITECTURES)

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(self.command.split())

    @property
    def program(self) -> str:
        return self.argv[0]


class Selftests(Struct, frozen=True, forbid_unknown_fields=True):
    tests: tuple[Test, ...]
    left_out: dict[str, str]
    """Programs of the directory that are not run, and why."""


@cache
def selftests(file: Path = KERNEL / "kselftests.toml") -> Selftests:
    """All of them; BadExperiment for a mistake in the file."""
    top = Place(file)
    found = top.convert(read_toml(file), Selftests)
    commands = [test.command for test in found.tests]
    for number, command in enumerate(commands):
        if command in commands[:number]:
            top.at(f"tests[{number}].command").fail(f"is '{command}' a second time")
    return found


def mm_selftests(asked: SuiteOptions, arch: Architecture) -> ForeignSuite:
    asked.refuse("mm", "source", "seconds", "seed")
    tests = chosen_tests(asked.tests, arch.name)
    source = from_debian(BASE_VERSION)
    programs = build_programs(arch, source, tests)

    def call(test: Test) -> Call:
        program = programs[test.program]
        guest, perform = partial(_guest, test, program), partial(_perform, test)
        return Call(test.command, (repr(test), program.read_bytes()), guest, perform)

    calls = {test.command: call(test) for test in tests}
    title = f"mm selftests of Linux {source.version}"
    return ForeignSuite(title, "kselftests", "3", calls, parse, skipped=4, left_out=selftests().left_out)


def chosen_tests(names: Collection[str], arch: str) -> list[Test]:
    """The tests of these programs, or commands, on an architecture; all of them without names."""
    tests = {test.command: test for test in selftests().tests if arch in test.arches}
    programs = {command: test.program for command, test in tests.items()}
    return [tests[command] for command in chosen(programs, names, f"mm for {arch}")]


def _guest(test: Test, program: Path, kernel: BuiltKernel, accelerator: Accelerator) -> GuestConfig:
    archive = initramfs(guest_programs(kernel.arch), {f"/bin/{test.program}": program}, kernel.modules)
    config = GuestConfig(kernel.arch, kernel.image, archive, accelerator, memory_mib=_MEMORY_MIB, cpus=test.cpus)
    config = replace(config, nodes=_nodes(test))
    return replace(config, disks=(DataDisk("ext4", 512 << 20).prepare(config), _swap(kernel.page_size)))


def _perform(test: Test, guest: Guest, on_output: OnOutput) -> JobResult:
    # Where the tests make their files.
    guest.run([":mount", "/dev/vda", "/tmp", "ext4"]).checked()
    guest.run([":write", "/tmp/file", ""]).checked()  # room
    guest.run(["swapon", "/dev/vdb"]).checked()
    if test.huge_mib:
        on_output(2, reserve_huge_pages(guest, test.huge_mib).encode())
    for path, value in test.settings:
        guest.run([":write", path, value]).checked()
    # One opens itself by the name it was called by.
    return guest.run([f"/bin/{test.program}", *test.argv[1:]], test.seconds, on_output=on_output)


def build_programs(arch: Architecture, source: Source, tests: Iterable[Test]) -> dict[str, Path]:
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
            found = _libraries(arch, home, {library for name in missing for library in libraries[name]})
            includes = ["-I", str(home), "-I", str(source.tree), "-isystem", str(source.tree / "tools/include/uapi")]
            with working("compiling the kernel's mm selftests", len(missing)) as task:
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


def _libraries(arch: Architecture, home: Path, names: set[str]) -> list[str]:
    """Compiler options for static libraries of Debian's, unpacked into the cache."""
    if not names:
        return []
    place = home / "packages"
    shutil.rmtree(place, ignore_errors=True)
    wanted = {f"lib{name}-dev" for name in names}
    for package in fetch(arch, wanted):
        if package.file.name.split("_")[0] in wanted:  # the C library is here already
            unpack(package.file, place)
    options = ["-isystem", str(place / "usr/include")]
    for directory in (place / "usr/lib").iterdir():
        options += ["-isystem", str(place / "usr/include" / directory.name), "-L", str(directory)]
    return options


def reserve_huge_pages(guest: Guest, mib: int) -> str:
    """As many as make ``mib``, or one that is larger; returns a line that says how many there are.

    The kernel reserves what it can. What to do with too few is up to the tests.
    """
    lines = guest.run([":read", "/proc/meminfo"]).checked().stdout.decode().splitlines()
    facts = dict(line.split(":") for line in lines)
    size = int(facts["Hugepagesize"].split()[0])
    count = max(mib * 1024 // size, 1)
    guest.run([":write", _HUGE_PAGES, str(count)]).checked()
    got = int(guest.run([":read", _HUGE_PAGES]).checked().stdout)
    return f"huge pages of {size} KiB: {got} of {count}\n"


def _nodes(test: Test) -> Nodes:
    """Several NUMA nodes, if the test wants them. The first has all CPUs."""
    share = (_MEMORY_MIB << 20) // test.nodes
    return tuple(Node(0 if number else test.cpus, share) for number in range(test.nodes)) if test.nodes > 1 else ()


def _swap(page_size: int) -> Disk:
    """A disk to swap to: nothing but the header that mkswap would write."""

    def make(partial: Path) -> None:
        with (partial / "swap").open("wb") as stream:
            stream.seek(1024)  # a version, the number of the last page, and no bad pages
            stream.write(struct.pack("=III", 1, _SWAP_BYTES // page_size - 1, 0))
            stream.seek(page_size - 10)
            stream.write(b"SWAPSPACE2")
            stream.truncate(_SWAP_BYTES)

    return Disk(made_once(cache_directory() / "disks", f"swap-{page_size}", make) / "swap", "raw")

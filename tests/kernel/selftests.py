# SPDX-License-Identifier: GPL-2.0-only
"""How our kselftests run in a guest."""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.files import KERNEL
from foliolab.kernel.built import BuiltKernel
from foliolab.suites.ktap import End, ResultLine, read
from foliolab.vm.accel import choose
from foliolab.vm.disk import DATA_FILE, DataDisk, Filesystem
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import splats

Programs = Callable[[Architecture], dict[str, Path]]


def guest_config(kernel: BuiltKernel, programs: Programs, memory_mib: int = 1024) -> GuestConfig:
    arch = kernel.arch
    extra = {f"/bin/{name}": path for name, path in programs(arch).items()}
    archive = initramfs(guest_programs(arch), extra)
    return GuestConfig(arch, kernel.image, archive, choose(arch), memory_mib=memory_mib, cpus=2)


def with_kunit(config: GuestConfig) -> GuestConfig:
    """The same for a boot that begins with KUnit, which Linux 7 has two parameters for."""
    return replace(config, boot_arguments=f"{config.boot_arguments} kunit.enable=1 kunit.autorun=1")


def results(output: str) -> tuple[list[ResultLine], list[ResultLine | str]]:
    """All results of a report, and what failed in it, plans that were broken included; skipped ones have not failed."""
    report = read(output)
    found = list(_all(report.cases))
    return found, [*(case for case in found if case.verdict is End.FAIL), *report.errors]


def _all(cases: Iterable[ResultLine]) -> Iterator[ResultLine]:
    for case in cases:
        yield from _all(case.parts)
        yield case


def check_kunit(console: str, names: tuple[str, ...], tree: Path = KERNEL / "files", but: str = "") -> None:
    """Each case of these suites of ours, as its source in ``tree`` has them, ran at boot and passed, ``but`` one."""
    report = read(re.sub(r"^\[ *\d+\.\d+\] ?", "", console.replace("\r", ""), flags=re.MULTILINE))
    assert report.errors == ()
    suites = {case.name: case for case in report.cases}
    for name in names:
        cases = re.findall(r"\bKUNIT_CASE(?:_PARAM)?\((\w+)", (tree / f"mm/{name}_kunit.c").read_text())
        assert [part.name for part in suites[name].parts] == [case for case in cases if case != but] != []
        assert {case.verdict for case in _all([suites[name]])} == {End.PASS}


SELFTESTS = (
    "fault_recency",
    "fault_recency_race",
    "file_folio",
    "mmap_readahead",
    "mmap_readahead_text",
    "mmap_readahead_race",
    "mmap_readahead_faulty",
    "mprotect_batch",
    "mprotect_batch_random",
    "mprotect_batch_race",
    "page_touch",
)

FAULTS_IN_FILES = tuple(name for name in SELFTESTS if name.startswith(("fault_recency", "mmap_readahead")))
"""Those for which it matters how much a fault maps."""

BRIEF = {
    "fault_recency_race": ("--seconds", "2"),
    "mmap_readahead_race": ("2",),
    "mprotect_batch_race": ("2",),
    "mprotect_batch_random": ("--sequences", "100"),
}
"""Arguments with which those that go on for many seconds take less of an emulator's time."""


def settings(guest: Guest) -> dict[str, str]:
    """All that the kselftests change, as far as this kernel has it: path -> content."""
    sizes = "/sys/kernel/mm/transparent_hugepage"
    places = [
        (sizes, r"hugepages-\d+kB", "/file_enabled"),
        (sizes, r"hugepages-\d+kB", "/enabled"),
        (sizes, r"hugepages-\d+kB", "/shmem_enabled"),
        ("/sys/kernel/mm/lru_gen", r"\w+", ""),
        ("/sys/kernel/mm/mmap_readahead", r"\w+", ""),
        ("/sys/kernel/debug/mmap_readahead", r"\w+", ""),
        ("/sys/kernel/debug/mprotect", r"\w+", ""),
        ("/sys/kernel/debug/page_touch", r"\w+", ""),
    ]
    paths = [
        "/proc/swaps",
        "/proc/sys/kernel/numa_balancing",
        "/proc/sys/vm/compaction_proactiveness",
        "/proc/sys/vm/dirty_writeback_centisecs",
        "/proc/sys/vm/page-cluster",
        "/sys/block/vda/bdi/request_kb",
        "/sys/block/vda/make-it-fail",
        "/sys/block/vda/queue/read_ahead_kb",
        "/sys/block/vda/queue/rotational",
        "/sys/kernel/mm/ksm/run",
        f"{sizes}/khugepaged/scan_sleep_millisecs",
    ]
    for directory, pattern, file in places:
        # There are no sizes where there are no large folios.
        names = guest.run([":list", directory]).stdout.decode().split()
        paths += [f"{directory}/{name}{file}" for name in names if re.fullmatch(pattern, name)]
    for injector in ("fail_make_request", "failslab", "fail_page_alloc"):
        directory = f"/sys/kernel/debug/{injector}"
        # Only the debug kernel has them.
        paths += [f"{directory}/{name}" for name in guest.run([":list", directory]).stdout.decode().split()]
    words = guest.run(["read-files", *paths]).checked().stdout.decode().split("\0")
    return dict(zip(words[:-1:2], words[1::2], strict=True))


@contextmanager
def guest_with_data(
    config: GuestConfig, filesystem: Filesystem, console: Path, disk: Disk | None = None
) -> Iterator[Guest]:
    """A guest with room on ``filesystem`` at /data, where the kselftests make files of their own."""
    data = disk or DataDisk(filesystem, 256 << 20).prepare(config)
    with Guest(replace(config, disks=(data,)), console) as guest:
        guest.run([":mount", "/dev/vda", "/data", filesystem]).checked()
        if not disk:
            guest.run([":write", DATA_FILE, ""]).checked()
        yield guest


def run_in(guest: Guest, names: Iterable[str], brief: Collection[str] = ()) -> list[str]:
    """Run kselftests in a guest_with_data(), those in ``brief`` as in BRIEF; returns the lines of what they skipped."""
    skipped = []
    before = settings(guest)
    for selftest in names:
        # The tests work in the current directory, as kselftests do.
        started = time.monotonic()
        done = guest.run(["in-directory", "/data", selftest, *(BRIEF[selftest] if selftest in brief else ())], 300)
        print(f"{selftest}: {time.monotonic() - started:.0f} s")  # for pytest -rP
        output = done.stdout.decode()
        found, failed = results(output)
        assert (failed, done.status) == ([], 0), output
        assert f"\n1..{len(found)}\n" in output, output
        assert splats(guest.console()) == []
        assert settings(guest) == before, selftest
        # Not what is expected to fail, which counts as skipped elsewhere.
        skipped += [line for line in output.splitlines() if "# SKIP" in line]
    return skipped

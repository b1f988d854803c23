# SPDX-License-Identifier: GPL-2.0-only
"""Our kernel code in kernels that check themselves: KUnit, the kselftests, and more of the random ones."""

import itertools
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.files import KERNEL
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.process import tool
from foliolab.suites.ktap import End
from foliolab.vm.guest import Disk, Guest
from foliolab.vm.outcome import splats
from tests.conftest import DEBUG_EXTRAS
from tests.kernel.selftests import (
    BRIEF,
    SELFTESTS,
    Programs,
    check_kunit,
    guest_config,
    guest_with_data,
    results,
    run_in,
    settings,
    with_kunit,
)
from tests.machines import ALL_KERNELS, ARM64_4K, MACHINES, X86_64_4K, Machine

pytestmark = [pytest.mark.boot, pytest.mark.debug]

BUT_FUZZ = "test_??[!y]*"
"""All cases but test_any_sequence, by its third letter. It takes 45 s here, and no kernel code: it runs on Linux 7.3,
and the fuzzer of tests/model has sanitizers too."""


@pytest.fixture(scope="module")
def guest(debug_kernel: BuiltKernel, programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """One that began with KUnit, with XFS, for its large folios; no kselftest runs on ext4 under a debug kernel."""
    config = with_kunit(guest_config(debug_kernel, programs))
    config = replace(config, boot_arguments=f"{config.boot_arguments} kunit.filter_glob=*.{BUT_FUZZ}")
    with guest_with_data(config, "xfs", tmp_path_factory.mktemp("debug") / "console.log") as found:
        yield found


def test_kunit(guest: Guest) -> None:
    suites = (path.name.removesuffix("_kunit.c") for path in (KERNEL / "files/mm").glob("*_kunit.c"))
    check_kunit(guest.console(), tuple(suites), but="test_any_sequence")
    assert splats(guest.console()) == []


def test_selftests_on_the_debug_kernel(guest: Guest) -> None:
    # In two seconds that one does not come to all that it counts here.
    assert run_in(guest, SELFTESTS, BRIEF.keys() - {"mmap_readahead_race"}) == []


def test_files_of_an_overlay(guest: Guest) -> None:
    # The test sets it where the device of the directory has it, and an overlay's has not.
    guest.run([":write", "/sys/block/vda/queue/read_ahead_kb", "1024"]).checked()
    before = settings(guest)
    done = guest.run(["in-overlay", "/data", "mmap_readahead_race"], 300)
    assert results(done.stdout.decode())[1] == [] and done.status == 0, done.stdout.decode() + done.stderr.decode()
    assert splats(guest.console()) == []
    assert settings(guest) == before


@pytest.mark.skipif(not ALL_KERNELS, reason="btrfs takes as long to build as half a kernel; $FOLIOLAB_KERNELS")
def test_compressed_files(debug_kernel: BuiltKernel, programs: Programs, tmp_path: Path) -> None:
    """Where a page is missing, btrfs reads and inflates the whole extent that holds it."""
    raw = tmp_path / "disk.raw"
    with raw.open("wb") as stream:
        stream.truncate(512 << 20)
    subprocess.run([tool("mkfs.btrfs"), "--quiet", str(raw)], check=True)
    config = replace(guest_config(debug_kernel, programs), disks=(Disk(raw, "raw"),))
    with Guest(config, tmp_path / "console.log") as guest:
        guest.run([":mount", "/dev/vda", "/data", "btrfs", "compress-force=lzo"]).checked()
        assert b"compress-force=lzo" in guest.run([":read", "/proc/mounts"]).checked().stdout
        assert run_in(guest, ["mmap_readahead_race"]) == []


SEQUENCES = os.environ.get("FOLIOLAB_SEQUENCES", "")
"""How many to compare: with thousands, on each machine, this takes hours, and debug kernels for all of them."""


@pytest.mark.skipif(not SEQUENCES, reason="the kselftest alone compares some; $FOLIOLAB_SEQUENCES")
@pytest.mark.parametrize("machine", MACHINES, indirect=True, ids=str)
def test_random_protections_on_the_debug_kernel(machine: Machine, programs: Programs, tmp_path: Path) -> None:
    """Other sequences than those of the kselftest's default."""
    kernel = build(KernelRequest(machine.arch, "patched", "debug", DEBUG_EXTRAS, page_size=machine.page_size))
    config = guest_config(kernel, programs)
    with guest_with_data(config, "ext4", tmp_path / "console.log") as guest:
        argv = ["in-directory", "/data", "mprotect_batch_random", "--seed", "1000", "--sequences", SEQUENCES]
        done = guest.run(argv, 60 + int(SEQUENCES))
        assert done.status == 0, done.stdout.decode()
        assert splats(guest.console()) == []


STRESS_SECONDS = os.environ.get("FOLIOLAB_STRESS_SECONDS", "")
"""How long to go on with what one run of a kselftest does for seconds."""


_NO_STRESS = pytest.mark.skipif(
    not STRESS_SECONDS, reason="the kselftest alone does it, as one of all; $FOLIOLAB_STRESS_SECONDS"
)


@_NO_STRESS
@pytest.mark.parametrize(
    ("machine", "extras"),
    [(X86_64_4K, DEBUG_EXTRAS), (ARM64_4K, DEBUG_EXTRAS), (X86_64_4K, ("preempt-rt", "xfs"))],
    indirect=["machine"],
    ids=["x86_64", "arm64", "x86_64-rt"],
)
def test_faults_in_files_under_stress_on_the_debug_kernel(
    machine: Machine, extras: tuple[str, ...], programs: Programs, tmp_path: Path
) -> None:
    """Races of all that changes a mapping, and failing reads and allocations with other seeds each time, by turns."""
    kernel = build(KernelRequest(machine.arch, "patched", "debug", extras, page_size=machine.page_size))
    with guest_with_data(guest_config(kernel, programs), "xfs", tmp_path / "console.log") as guest:
        before = settings(guest)
        end = time.monotonic() + int(STRESS_SECONDS)
        for seed in itertools.count(1):
            for argv in (["mmap_readahead_race", "30"], ["mmap_readahead_faulty", str(seed)]):
                done = guest.run(["in-directory", "/data", *argv], 600)
                found, failed = results(done.stdout.decode())
                assert failed == [] and done.status == 0, done.stdout.decode() + done.stderr.decode()
                assert {case.verdict for case in found} == {End.PASS}, done.stdout.decode()
                assert splats(guest.console()) == []
                assert settings(guest) == before
            print(f"{seed} rounds")  # for pytest -rP
            if time.monotonic() > end:
                break


_FUNCTION = r"^{}(?:[a-z][\w *]*[ *])?(\w+)\("
OUR_FUNCTIONS = {
    name
    for directory, pattern, added in (("files/mm", "*[!t].c", ""), ("patches/6.12", "*.patch", r"\+"))
    for file in (KERNEL / directory).glob(pattern)
    for name in re.findall(_FUNCTION.format(added), file.read_text(), re.MULTILINE)
}
"""Those that are written here, or that a patch adds to a file of the kernel's."""

READS_FLAGS = "mem_cgroup_from_task /"
"""Its lockdep condition reads the flags of another task, which all tasks change that read pages, also by stock code."""


@_NO_STRESS
@pytest.mark.parametrize("machine", [X86_64_4K, ARM64_4K], indirect=True, ids=str)
def test_no_data_race_is_ours(machine: Machine, programs: Programs, tmp_path: Path) -> None:
    """Races of faults with all that changes a mapping, with a kernel that finds data races; it has some of its own."""
    assert {"mmap_readahead_adapt", "mmap_readahead_known", "read_and_wait", "change_pte_runs"} <= OUR_FUNCTIONS
    kernel = build(KernelRequest(machine.arch, "patched", "debug", ("kcsan", "xfs"), page_size=machine.page_size))
    races = (
        ["mmap_readahead_race", STRESS_SECONDS],
        ["fault_recency_race", "--seconds", STRESS_SECONDS],
        ["mprotect_batch_race", STRESS_SECONDS],
    )
    with guest_with_data(guest_config(kernel, programs), "xfs", tmp_path / "console.log") as guest:
        for argv in races:
            done = guest.run(["in-directory", "/data", *argv], 600 + 2 * int(STRESS_SECONDS))
            assert results(done.stdout.decode())[1] == [] and done.status == 0, done.stdout.decode()
        counts = guest.run([":read", "/sys/kernel/debug/kcsan"]).checked().stdout.decode()
        found = splats(guest.console())
    watched = re.search(r"^setup_watchpoints: (\d+)", counts, re.MULTILINE)
    assert watched and int(watched[1]) > 1000, counts
    reported = [title for title in found if "KCSAN: data-race" in title]
    print(counts, *reported, sep="\n")  # for pytest -rP
    others = [title for title in reported if READS_FLAGS not in title]
    assert [title for title in others if OUR_FUNCTIONS & set(re.findall(r"\w+", title))] == []
    assert [title for title in found if title not in reported] == []


@_NO_STRESS
def test_fault_recency_under_stress_on_the_debug_kernel(
    debug_kernel: BuiltKernel, programs: Programs, tmp_path: Path
) -> None:
    seconds = int(STRESS_SECONDS)
    config = guest_config(debug_kernel, programs)
    with guest_with_data(config, "xfs", tmp_path / "console.log") as guest:
        before = settings(guest)
        # Beside that, it takes two minutes at most for what is late to happen, and for all to end.
        argv = ["in-directory", "/data", "fault_recency_race", "--seconds", str(seconds)]
        done = guest.run(argv, 300 + seconds)
        output = done.stdout.decode()
        print(output)  # counts, for pytest -rP
        found, failed = results(output)
        assert ([case.verdict for case in found], failed, done.status) == ([End.PASS], [], 0), output
        assert splats(guest.console()) == []
        assert settings(guest) == before
        groups = guest.run([":list", "/sys/fs/cgroup"]).checked().stdout.decode().split()
        assert "page_cache_selftest" not in groups

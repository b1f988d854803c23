# SPDX-License-Identifier: GPL-2.0-only
"""The probe by itself on this machine, and in guests, which have all that it wants."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foliolab.arch import NATIVE
from foliolab.kernel.built import BuiltKernel
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import splats
from tests.guest.program import failed, run
from tests.machines import Machine

PAGE = os.sysconf("SC_PAGESIZE")
MIB = 1 << 20
THP = Path("/sys/kernel/mm/transparent_hugepage")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root sees in which folios memory is")


@pytest.fixture(scope="module")
def probe() -> Path:
    return guest_programs(NATIVE, Reporter())["mprotect"]


KEYS = [
    "probe",
    "case",
    "bytes",
    "rounds",
    "page_size",
    "folio_bytes",
    "right_folios",
    "calls",
    "ptes_visited",
    "seconds",
    "protect_seconds",
    "restore_seconds",
    "undisturbed_seconds",
    "touch_seconds",
    "undisturbed_touch_seconds",
    "ptes_touched",
    "tlb_flushes",
    "tlb_flushes_per_mib",
    "batches",
    "batch_length",
    "batched_share",
]


@needs_root
def test_the_result_says_all(probe: Path) -> None:
    result = run(probe, "--case", "T3", "--bytes", str(1000 * PAGE - 1), "--rounds", "3")
    assert list(result) == KEYS
    asked = {"case": "T3", "bytes": 1000 * PAGE, "rounds": 3, "page_size": PAGE, "folio_bytes": PAGE}
    assert asked.items() <= result.items()
    assert (result["calls"], result["ptes_visited"], result["touch_seconds"]) == (6, 6000, None)
    assert result["seconds"] == pytest.approx(result["protect_seconds"] + result["restore_seconds"], abs=2e-9)
    assert 0 < result["undisturbed_seconds"] <= result["seconds"] < 10
    assert result["right_folios"] > 0.95


@needs_root
def test_touches_are_told_apart(probe: Path) -> None:
    result = run(probe, "--case", "shared-dirty", "--bytes", "1M", "--rounds", "2")
    assert (result["ptes_visited"], result["ptes_touched"]) == (4 * MIB // PAGE, 2 * MIB // PAGE)
    assert 0 < result["undisturbed_touch_seconds"] <= result["touch_seconds"] < 10


@needs_root
def test_a_file_of_one_s_own(probe: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine" * (MIB // 4))
    arguments = ["--case", "private-file", "--file", str(file), "--bytes"]
    assert run(probe, *arguments, "1M")["ptes_visited"] == 8 * MIB // PAGE
    assert file.read_bytes() == b"mine" * (MIB // 4)
    assert failed(probe, *arguments, "2M") == (1, f"mprotect: {file} holds less than {2 * MIB} bytes.")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--case is missing; see --help."),
        (["--case", "T4"], "--case has no value 'T4'; see --help."),
        (["--case", "T3", "more"], "'more' is not an option; see --help."),
        (["--case", "T3", "--rounds", "0"], "--rounds takes a number of at least 1, not '0'."),
        (["--case", "T3", "--bytes", "lots"], "--bytes takes a number of at least 1, not 'lots'."),
        (["--case", "T2", "--folio", "64K"], "--folio is not for --case T2."),
        (["--case", "shared-dirty", "--folio", "64K"], "--folio is not for --case shared-dirty."),
        (["--case", "swap"], "--case swap needs --swap; see --help."),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"mprotect: {sentence}")


def test_odd_folios(probe: Path) -> None:
    status, sentence = failed(probe, "--case", "T3", "--folio", "48K")
    assert (status, sentence[:45]) == (2, "mprotect: --folio takes a power of two up to ")


@pytest.mark.skipif(os.geteuid() != 0, reason="there is nobody else to become")
def test_it_needs_root(probe: Path) -> None:
    as_nobody = ["setpriv", "--reuid", "65534", "--clear-groups"]
    # The cache may be in a directory that others cannot enter: the program is passed open.
    with probe.open("rb") as program:
        argv = [*as_nobody, f"/proc/self/fd/{program.fileno()}", "--case", "T3"]
        done = subprocess.run(argv, capture_output=True, check=False, pass_fds=[program.fileno()])
    assert done.returncode == 1
    assert done.stderr == b"mprotect: Only root may see in which folios memory is; run this as root.\n"


def host_settings() -> dict[Path, str]:
    return {path: path.read_text() for path in THP.glob("hugepages-*/enabled")}


@needs_root
@pytest.mark.skipif(not host_settings(), reason="this kernel has no sizes of folios for anonymous memory")
def test_who_is_asked_to_end_puts_settings_back(probe: Path) -> None:
    before = host_settings()
    arguments = ["--case", "T2", "--bytes", "1M", "--rounds", "1000000000"]
    with subprocess.Popen([probe, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        deadline = time.monotonic() + 30
        while host_settings() == before and time.monotonic() < deadline:
            assert running.poll() is None
            time.sleep(0.001)
        assert host_settings() != before
        running.terminate()
        assert running.communicate(timeout=30) == (b"", b"")
    assert running.returncode == -signal.SIGTERM
    assert host_settings() == before


@needs_root
def test_a_result_that_nobody_reads_is_complained_about(probe: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    argv = [str(probe), "--case", "T3", "--bytes", "1M", "--rounds", "1"]
    done = subprocess.run(argv, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"mprotect: The result could not be written: Broken pipe.\n")


# In guests.

DISK = DataDisk("ext4", 48 * MIB)
SWITCH = "/sys/kernel/debug/mprotect/alike_runs"


@contextmanager
def booted(kernel: BuiltKernel, place: Path) -> Iterator[Guest]:
    image = initramfs(guest_programs(kernel.arch, Reporter()))
    bare = GuestConfig(kernel.arch, kernel.image, image, choose(kernel.arch), memory_mib=512)
    with Guest(replace(bare, disks=(DISK.prepare(bare, Reporter()),)), place / "console.log") as running:
        running.run([":mount", "/dev/vda", "/data", "ext4"]).checked()
        yield running
        assert splats(running.console()) == []


@pytest.fixture(scope="module")
def unpatched(unpatched_kernel: BuiltKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    with booted(unpatched_kernel, tmp_path_factory.mktemp("unpatched")) as running:
        yield running


@pytest.fixture(scope="module")
def patched(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    with booted(machine.kernel(), tmp_path_factory.mktemp("patched")) as running:
        yield running


@pytest.fixture
def not_batching(patched: Guest) -> Iterator[Guest]:
    """The patched kernel with its batches switched off."""
    guest_write(patched, SWITCH, "0")
    yield patched
    guest_write(patched, SWITCH, "1")


def in_guest(guest: Guest, case: str, *arguments: str) -> dict[str, Any]:
    command = ["mprotect", "--case", case, "--bytes", "16M", "--rounds", "1", "--swap", DATA_FILE, *arguments]
    result: dict[str, Any] = json.loads(guest.run(command, 120).checked().stdout)
    return result


def guest_settings(guest: Guest) -> dict[str, bytes]:
    """All that the probe changes."""

    def read(path: str) -> bytes:
        return guest.run([":read", path]).stdout

    sizes = guest.run([":list", str(THP)]).checked().stdout.decode().split()
    paths = [f"{THP}/{size}/enabled" for size in sizes if size.startswith("hugepages-")]
    paths += ["/proc/sys/kernel/numa_balancing", "/proc/swaps", "/sys/kernel/tracing/kprobe_events"]
    scans = guest.run([":list", "/sys/kernel/debug/sched/numa_balancing"]).stdout.decode().split()
    paths += [f"/sys/kernel/debug/sched/numa_balancing/{name}" for name in scans]
    found = {path: read(path) for path in paths}
    return found | {"instances": guest.run([":list", "/sys/kernel/tracing/instances"]).checked().stdout}


CASES = [
    ("T1",),
    ("T2",),
    ("T3",),
    ("shared-dirty",),
    ("uffd-wp",),
    ("uffd-wp", "--folio", "256K"),
    ("private-file",),
    ("private-file", "--file", DATA_FILE),
    ("half-exclusive",),
    ("half-exclusive", "--folio", "256K"),
    ("alternating",),
    ("swap",),
    ("numa-hint",),
    ("numa-skip", "--folio", "256K"),
]


def all_is_left_as_it_was(guest: Guest, case: tuple[str, ...]) -> dict[str, Any]:
    """Run a case, check what is the same on every kernel, and return its result."""
    before = guest_settings(guest)
    assert len(before) > 8
    page = guest.ready.page_size
    result = in_guest(guest, *case)
    folios = {"T1": 2 * MIB, "T2": 64 << 10 if page < 65536 else 256 << 10}
    wanted = 256 << 10 if "--folio" in case else folios.get(case[0], page)
    assert (result["folio_bytes"], result["case"]) == (wanted, case[0])
    assert result["right_folios"] > 0.95
    assert result["ptes_visited"] == result["calls"] * 16 * MIB / page
    assert result["seconds"] > 0
    assert guest_settings(guest) == before
    return result


@pytest.mark.boot
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_every_case_leaves_all_as_it_was(patched: Guest, case: tuple[str, ...]) -> None:
    assert all_is_left_as_it_was(patched, case)["batches"] is not None


@pytest.mark.boot
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_every_case_runs_on_the_unpatched_kernel(unpatched: Guest, case: tuple[str, ...]) -> None:
    result = all_is_left_as_it_was(unpatched, case)
    assert (result["batches"], result["batch_length"]) == (None, None)


@pytest.mark.boot
def test_flushes_are_counted(not_batching: Guest, machine: Machine) -> None:
    """Two calls, each of which flushes once; on arm64, contpte blocks are unfolded and folded as well."""
    block = 64 << 10 if machine.page_size == 4096 else 2 * MIB
    blocks = 16 * MIB // block if machine.arch.name == "arm64" else 0
    assert in_guest(not_batching, "T3")["tlb_flushes"] == 2
    flushed = in_guest(not_batching, "T1")
    assert flushed["tlb_flushes"] == pytest.approx(2 + 4 * blocks, abs=2)
    assert flushed["tlb_flushes_per_mib"] == flushed["tlb_flushes"] / 32


@pytest.mark.boot
def test_scans_flush_where_they_mark(patched: Guest) -> None:
    assert in_guest(patched, "numa-hint")["tlb_flushes"] >= 1
    assert in_guest(patched, "numa-skip")["ptes_visited"] > 0


@pytest.mark.boot
@pytest.mark.parametrize("case", ["T1", "T2", "T3", "half-exclusive"])
def test_batches_are_counted(patched: Guest, case: str) -> None:
    result = in_guest(patched, case)
    entries = 16 * MIB // patched.ready.page_size
    if case in ("T1", "T2"):
        assert 0.9 < result["batched_share"] <= 1
        assert result["batch_length"] >= result["folio_bytes"] / patched.ready.page_size / 2
    assert result["batches"] * (result["batch_length"] or 0) == pytest.approx(result["batched_share"] * 2 * entries)


@pytest.mark.boot
@pytest.mark.parametrize("case", ["T1", "T2", "T3", "half-exclusive"])
def test_batches_may_be_switched_off(not_batching: Guest, case: str) -> None:
    result = in_guest(not_batching, case)
    assert (result["batches"], result["batch_length"], result["batched_share"]) == (0, None, 0)


def guest_write(guest: Guest, path: str, value: str) -> None:
    guest.run([":write", path, value]).checked()


@pytest.mark.boot
def test_what_cannot_be_had_is_said(patched: Guest) -> None:
    def words(*arguments: str) -> str:
        done = patched.run(["mprotect", "--case", *arguments])
        assert (done.status, done.stdout) == (1, b"")
        return done.stderr.decode().strip()

    assert words("swap", "--swap", "/tmp/none") == "mprotect: /tmp/none: No such file or directory."
    assert words("swap", "--bytes", "256M", "--swap", DATA_FILE).startswith("mprotect: /data/file holds less than the ")

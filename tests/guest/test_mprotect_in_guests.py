# SPDX-License-Identifier: GPL-2.0-only
"""The probe of protection on booted kernels, with the folios that they give."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from foliolab.kernel.built import BuiltKernel
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Guest
from foliolab.vm.outcome import splats
from tests.guest.program import MIB, THP
from tests.guests import guest_with
from tests.machines import Machine

DISK = DataDisk("ext4", 48 * MIB)
SWITCH = "/sys/kernel/debug/mprotect/alike_runs"


@contextmanager
def booted(kernel: BuiltKernel, place: Path) -> Iterator[Guest]:
    with guest_with(DISK, kernel, place / "console.log") as running:
        yield running
        assert splats(running.console()) == []


@pytest.fixture(scope="module")
def stock(stock_kernel: BuiltKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    with booted(stock_kernel, tmp_path_factory.mktemp("stock")) as running:
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
    ("none", "--folio", "256K"),
    ("none", "--folio", "2M"),
    ("regions",),
    ("singles", "--folio", "256K"),
    ("empty",),
]
CALLED = {"regions": 8 * MIB, "singles": 0, "empty": 64 << 10}
"""Bytes that a call changes, if it is not all; 0 is a page."""


def all_is_left_as_it_was(guest: Guest, case: tuple[str, ...]) -> dict[str, Any]:
    """Run a case, check what is the same on every kernel, and return its result."""
    before = guest_settings(guest)
    assert len(before) > 8
    page = guest.ready.page_size
    result = in_guest(guest, *case)
    folios = {"T1": 2 * MIB, "T2": 64 << 10 if page < 65536 else 256 << 10}
    sizes = {"256K": 256 << 10, "2M": 2 * MIB}
    wanted = sizes[case[2]] if "--folio" in case else folios.get(case[0], page)
    assert (result["folio_bytes"], result["case"]) == (wanted, case[0])
    assert result["right_folios"] > 0.95
    assert result["ptes_visited"] == result["calls"] * (CALLED.get(case[0], 16 * MIB) or page) / page
    assert result["seconds"] > 0
    assert guest_settings(guest) == before
    return result


@pytest.mark.boot
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_every_case_leaves_all_as_it_was(patched: Guest, case: tuple[str, ...]) -> None:
    result = all_is_left_as_it_was(patched, case)
    assert result["batches"] is not None
    if case == ("numa-hint",):
        assert result["tlb_flushes"] >= 1  # a scan flushes where it marks


@pytest.mark.boot
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_every_case_runs_on_the_stock_kernel(stock: Guest, case: tuple[str, ...]) -> None:
    result = all_is_left_as_it_was(stock, case)
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

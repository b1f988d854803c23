# SPDX-License-Identifier: GPL-2.0-only
"""The probes that are about many files, strangers and threads, in a guest with a disk for all of them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from foliolab.kernel.built import BuiltKernel
from foliolab.vm.disk import FileTrees
from foliolab.vm.guest import Guest
from tests.guests import guest_with

pytestmark = pytest.mark.boot

TREES = ("20x64", "5x4096", "300x4", "1x4096", "64x64")


@pytest.fixture(scope="module")
def guest(patched_kernel: BuiltKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    console = tmp_path_factory.mktemp("guest") / "console.log"
    with guest_with(FileTrees("ext4", TREES), patched_kernel, console, "ro") as machine:
        yield machine


def run(guest: Guest, *argv: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(guest.run(list(argv)).checked().stdout)
    return result


def test_whole_files_are_read_once(guest: Guest) -> None:
    arguments = ("--directory", "/data", "--files", "20", "--file_pages", "64", "--access", "whole", "--drop-caches")
    result = run(guest, "many-files", *arguments, "--read_ahead_kb", "4096")
    # Holes, or extents that were never written, would be read without the device.
    assert result["floor_bytes"] == 20 * 64 * 4096 <= result["read_bytes"] < 1.1 * result["floor_bytes"]


@pytest.mark.parametrize("stranger", ["none", "many-files", "exec"])
def test_what_a_stranger_reads_is_not_counted(guest: Guest, stranger: str) -> None:
    arguments = ("--directory", "/data", "--file_pages", "4096", "--others", "300", "--other_pages", "4")
    result = run(guest, "strangers", *arguments, "--stranger", stranger, "--turns", "5", "--drop-caches")
    assert result["major_faults"] <= 5 * 6
    assert result["read_bytes"] <= 5 * 6 * 128 * 1024


def test_every_thread_touches_its_share(guest: Guest) -> None:
    arguments = ("--disk", "/dev/vda", "--one_pages", "4096", "--own_pages", "64", "--threads", "4")
    one, own = (run(guest, "contention", *arguments, "--files", files) for files in ("one", "own"))
    assert (one["work"], own["work"]) == (4096 // 16, 4 * 64 // 16)
    assert 0.9 * one["work"] < one["major_faults"] <= one["work"]
    assert guest.run([":list", "/sys/block"]).checked().stdout.decode().count("zram") == 1


def test_a_stream_counts_its_own_misses(guest: Guest) -> None:
    arguments = ("--disk", "/dev/vda", "--one_pages", "4096", "--files", "stream", "--read_ahead_kb", "128")
    alone, beside = (run(guest, "contention", *arguments, "--threads", threads) for threads in ("1", "2"))
    assert alone["work"] == beside["work"] == 4096 // 16
    assert 1 <= alone["stream_faults"] == alone["major_faults"] < 256 // 16
    assert 1 <= beside["stream_faults"] < beside["major_faults"]

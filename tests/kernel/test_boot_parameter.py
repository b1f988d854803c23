# SPDX-License-Identifier: GPL-2.0-only
"""The rules for mapped files switched off on the kernel's command line."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foliolab.kernel.built import BuiltKernel
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Guest
from tests.guests import guest_with

pytestmark = pytest.mark.boot

RULES = "/sys/kernel/debug/mmap_readahead"
ADAPTIVE = "/sys/kernel/mm/mmap_readahead/adaptive"
FILE_BYTES = 320 << 20


@contextmanager
def booted(kernel: BuiltKernel, parameter: str, place: Path) -> Iterator[Guest]:
    """With the data disk mounted, and windows of 4 MiB."""
    data = DataDisk("ext4", FILE_BYTES)
    with guest_with(data, kernel, place / "console.log", "ro", boot_arguments=parameter) as guest:
        guest.run([":write", "/sys/block/vda/queue/read_ahead_kb", "4096"]).checked()
        yield guest


def switched_on(guest: Guest) -> set[str]:
    """Of the switches that read as 0 or 1, those that read as 1."""
    names = guest.run([":list", RULES]).checked().stdout.decode().split()
    rules = [f"{RULES}/{name}" for name in names if name.startswith(("hit_", "text_", "huge_"))]
    assert len(rules) == 9
    values = {path: guest.run([":read", path]).checked().stdout for path in (ADAPTIVE, *rules)}
    assert set(values.values()) <= {b"0\n", b"1\n"}
    return {Path(path).name for path, value in values.items() if value == b"1\n"}


def times_touched(guest: Guest) -> float:
    """What is read when a page in a hundred is touched at random, over what that is."""
    done = guest.run(["sparse-mmap", "--file", DATA_FILE, "--fraction", "0.01", "--seed", "1", "--drop-caches"])
    return int(json.loads(done.checked().stdout)["read_bytes"]) / (FILE_BYTES // 100)


def test_off_is_off_until_it_is_switched_on(patched_kernel: BuiltKernel, tmp_path: Path) -> None:
    with booted(patched_kernel, "mmap_readahead=off", tmp_path) as guest:
        assert switched_on(guest) == set()
        assert times_touched(guest) > 20
        guest.run([":write", ADAPTIVE, "1"]).checked()
        assert times_touched(guest) < 2


@pytest.mark.parametrize(("parameter", "complaint"), [("mmap_readahead=on", False), ("mmap_readahead=2much", True)])
def test_on_is_what_it_boots_with(parameter: str, complaint: bool, patched_kernel: BuiltKernel, tmp_path: Path) -> None:
    with booted(patched_kernel, parameter, tmp_path) as guest:
        texts = {"text_in_folios", "text_in_windows", "text_keeps_hits", "text_uncounted"}
        assert switched_on(guest) == {"adaptive", "huge_hint_capped", *texts}
        assert times_touched(guest) < 2
        assert ("Malformed early option 'mmap_readahead'" in guest.console()) is complaint

# SPDX-License-Identifier: GPL-2.0-only
"""Looks at what is large take no longer than they were asked to, and nobody feels them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from foliohost import pages
from foliohost.watch import Watch
from tests.host.command import ARGV

SIZE = 1 << 40
MAPPINGS = 10_000
PROGRAM = f"""
import ctypes, mmap, os, random, sys, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def mapped(name, size, rights):
    place = libc.mmap(None, size, rights, mmap.MAP_SHARED, os.open(name, os.O_RDWR), 0)
    assert place != ctypes.c_void_p(-1).value
    return place
large = mapped(sys.argv[1], {SIZE}, mmap.PROT_READ)
libc.madvise(large, {SIZE}, mmap.MADV_RANDOM)
for number in range({MAPPINGS}):  # of different rights, so that no two become one
    mapped(sys.argv[2], 1 << 16, mmap.PROT_READ | (mmap.PROT_WRITE if number % 2 else 0))
numbers = random.Random(1)
print("ready", flush=True)
while True:
    ctypes.c_char.from_address(large + numbers.randrange({SIZE})).value
    time.sleep(0.002)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A program that touches a sparse mapping of 1 TiB here and there, and has 10,000 others."""
    place = tmp_path_factory.mktemp("large")
    for name, size in (("file", SIZE), ("small", 1 << 16)):
        (place / name).touch()
        try:
            os.truncate(place / name, size)
        except OSError:
            pytest.skip("the file system has no files of 1 TiB")
    argv = [sys.executable, "-c", PROGRAM, str(place / "file"), str(place / "small")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as program:
        assert program.stdout
        assert program.stdout.readline() == b"ready\n"
        yield program.pid
        program.kill()
    (place / "file").unlink()


def ahead_of_others() -> None:
    """Have a process not wait for other work on a busy machine."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def test_the_time_is_kept(large: int) -> None:
    argv = [*ARGV, "diagnose", "--pid", str(large), "--seconds", "10", "--json"]
    begun = time.monotonic()
    try:
        words = subprocess.run(argv, stdout=subprocess.PIPE, preexec_fn=ahead_of_others, check=True)
    except subprocess.SubprocessError:
        pytest.skip("only root may run ahead of others")
    assert time.monotonic() - begun <= 11
    found = json.loads(words.stdout)
    assert found["seconds"] > 8
    file = next(file for file in found["files"] if file["size_bytes"] == SIZE)
    assert file["hint"] == "random"
    assert file["mapped_pages"] > 0


@pytest.mark.parametrize("seconds", [1, 3])
def test_a_look_at_the_machine_keeps_its_time(large: int, seconds: int) -> None:
    """With the start of Python, on a machine that has others to do."""
    argv = [*ARGV, "diagnose", "--host", "--seconds", str(seconds), "--json"]
    begun = time.monotonic()
    try:
        words = subprocess.run(argv, stdout=subprocess.PIPE, preexec_fn=ahead_of_others, check=True)
    except subprocess.SubprocessError:
        pytest.skip("only root may run ahead of others")
    assert time.monotonic() - begun <= seconds + 1
    assert json.loads(words.stdout)["seconds"] > seconds / 4


@pytest.mark.parametrize("scans", [True, False])
def test_a_look_is_short(large: int, scans: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In processor time of ours, in which the kernel's is: what it walks is locked meanwhile."""
    if scans and not pages._scans(large):
        pytest.skip("this kernel has no PAGEMAP_SCAN")
    monkeypatch.setattr(pages, "_known", [scans])
    watch = Watch(lambda: [large])
    before = time.process_time()
    watch.look()
    assert time.process_time() - before < 1.5
    time.sleep(1)
    watch.look()
    file = next(file for file in watch.finish().files if file.size_bytes == SIZE)
    assert file.mapped_pages >= 0
    assert (file.one_in > 1) is not scans

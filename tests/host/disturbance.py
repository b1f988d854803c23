# SPDX-License-Identifier: GPL-2.0-only
"""How much a look slows a program that maps 1 TiB and has 10,000 other mappings; started by hand, as root.

``python -m tests.host.disturbance --pairs 20``. The same work is done with a look and without one, in turns. Both run
ahead of others, so that other work on the machine is in neither. Times of mmap() and munmap() are those of the program,
which wait for whoever walks its address space. ``--hash-kib`` decides how many touches a second there are.
"""

import argparse
import ctypes
import hashlib
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from foliolab.analyse.paired import shift
from tests.host.command import ARGV, ENVIRONMENT
from tests.host.test_large import MAPPINGS, SIZE, ahead_of_others

PAGE = os.sysconf("SC_PAGE_SIZE")
WORK_SECONDS = 3.0
LOOK_SECONDS = "5"
"""Long enough for Python's start, and for all of the work."""
PAIR_EACH = 20
"""Touches, after which something is mapped and unmapped."""


class Program:
    """Touches places of a file of holes, so that no disk's time is in it."""

    def __init__(self, place: Path, hash_kib: int) -> None:
        self._hashed = bytes(hash_kib << 10)
        self._handles = [os.open(place / name, os.O_RDWR | os.O_CREAT) for name in ("file", "small")]
        for handle, size in zip(self._handles, (SIZE, 1 << 16), strict=True):
            os.truncate(handle, size)
        self._large = mmap.mmap(self._handles[0], SIZE, prot=mmap.PROT_READ)
        self._large.madvise(mmap.MADV_RANDOM)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        self._libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        for number in range(MAPPINGS):  # of different rights, so that no two become one
            self._map(mmap.PROT_READ | (mmap.PROT_WRITE if number % 2 else 0))

    def _map(self, rights: int) -> int:
        place = self._libc.mmap(None, 1 << 16, rights, mmap.MAP_SHARED, self._handles[1], 0)
        assert place not in (None, ctypes.c_void_p(-1).value)
        return int(place)

    def work(self, touches: int) -> dict[str, float]:
        """Seconds of so many touches, those of the processor, and the longest of each call."""
        numbers, longest = random.Random(1), {"mmap": 0.0, "munmap": 0.0}
        began, spent = time.perf_counter(), time.process_time()
        for touch in range(touches):
            self._large[numbers.randrange(SIZE // PAGE) * PAGE]
            hashlib.sha256(self._hashed)  # a program has to do something with what it reads
            if touch % PAIR_EACH == 0:
                first = time.perf_counter()
                place = self._map(mmap.PROT_READ)
                then = time.perf_counter()
                self._libc.munmap(place, 1 << 16)
                longest["munmap"] = max(longest["munmap"], time.perf_counter() - then)
                longest["mmap"] = max(longest["mmap"], then - first)
        took = {"seconds": time.perf_counter() - began, "processor": time.process_time() - spent}
        self._large.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(self._handles[0], 0, 0, os.POSIX_FADV_DONTNEED)
        return took | longest

    def serve(self) -> None:
        for line in sys.stdin:
            print(json.dumps(self.work(int(line))), flush=True)


@contextmanager
def look(pid: int) -> Iterator[dict[str, float]]:
    """One that lasts longer than the block; what it said of itself is there afterwards."""
    argv = [*ARGV, "diagnose", "--json", "--no-probe", "--pid", str(pid), "--seconds", LOOK_SECONDS]
    told: dict[str, float] = {}
    with subprocess.Popen(argv, env=ENVIRONMENT, stdout=subprocess.PIPE, preexec_fn=ahead_of_others) as looking:
        yield told
        assert looking.poll() is None, "The look ended before the work did."
        out, _ = looking.communicate()
    assert looking.returncode == 0
    told |= {"seconds": json.loads(out)["seconds"]}


def measure(pairs: int, hash_kib: int, place: Path) -> list[tuple[dict[str, float], dict[str, float]]]:
    """What the work took without a look and with one, of each pair."""
    argv = [sys.executable, "-m", "tests.host.disturbance", "--hash-kib", str(hash_kib)]
    argv += ["--program", str(place)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=ahead_of_others
    ) as program:
        assert program.stdin
        assert program.stdout

        def work(touches: int) -> dict[str, float]:
            print(touches, file=program.stdin, flush=True)
            found: dict[str, float] = json.loads(program.stdout.readline() if program.stdout else "")
            return found

        def looked_at() -> dict[str, float]:
            with look(program.pid):
                return work(touches)

        work(1000)
        touches = round(1000 * WORK_SECONDS / work(1000)["seconds"])
        print(f"{touches} touches, {touches / WORK_SECONDS:.0f} a second", file=sys.stderr)
        found = []
        for number in range(pairs):
            if number % 2:
                found.append((work(touches), looked_at()))
            else:
                looked = looked_at()
                found.append((work(touches), looked))
        program.stdin.close()
    return found


def tell(pairs: Sequence[tuple[dict[str, float], dict[str, float]]]) -> None:
    for name in ("seconds", "processor"):
        more = shift([100 * (looked[name] / alone[name] - 1) for alone, looked in pairs])
        between = "no interval" if more.interval is None else f"{more.interval[0]:+.2f} to {more.interval[1]:+.2f} %"
        print(f"{name}: {more.estimate:+.2f} % ({between}), n = {len(pairs)}, p = {more.p:.3f}")
    for name in ("mmap", "munmap"):
        for words, which in (("without a look", 0), ("with one", 1)):
            all_of_them = [1000 * pair[which][name] for pair in pairs]
            median = statistics.median(all_of_them)
            print(f"longest {name}() {words}: {max(all_of_them):.2f} ms, {median:.2f} ms in the median of runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--hash-kib", type=int, default=1024, help="KiB to hash after each touch")
    parser.add_argument("--program", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.program:
        Program(arguments.program, arguments.hash_kib).serve()
    else:
        with tempfile.TemporaryDirectory() as place:
            tell(measure(arguments.pairs, arguments.hash_kib, Path(place)))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only
"""A program that touches pages of a mapped file in one of some ways: ``touch_cases.py FILE CASE [wait] [hint]``.

With ``wait``, it begins when it is sent a line. It tells what it read, how often it waited, and for how long.
"""

import json
import mmap
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
PAGES = (512 << 20) // PAGE
"""Of the file."""
SECONDS = 4
"""Over which touches are spread, at least, and in which what is touched stays mapped afterwards."""

CACHED_SECONDS = 50e-6
"""A touch of a cached page takes less. What takes longer is counted as a wait."""

_chance = random.Random(1)


def at_random(count: int, pages: int = PAGES) -> Iterator[int]:
    return (_chance.randrange(pages) for _ in range(count))


def runs(count: int, length: Callable[[], int], step: int = 1, aligned: int = 1) -> Iterator[int]:
    """Runs of adjacent pages, each of which begins at random, at a multiple of ``aligned``."""
    for _ in range(count):
        size = length()
        first = _chance.randrange((PAGES - size) // aligned) * aligned
        yield from range(first, first + size) if step > 0 else range(first + size - 1, first - 1, -1)


def geometric() -> int:
    """2.3 on average."""
    length = 1
    while _chance.random() > 1 / 2.3:
        length += 1
    return length


def skewed(count: int) -> Iterator[int]:
    """Some places far more often than others, and these all over the file."""
    return (int(PAGES * _chance.random() ** 4) * 40503 % PAGES for _ in range(count))


def down_a_tree(count: int) -> Iterator[int]:
    """A root, 60 pages below it, 3,600 below these, and leaves."""
    for _ in range(count):
        leaf = _chance.random()
        yield 0
        for first, size in ((1, 60), (61, 3600), (3661, PAGES - 3661)):
            yield first + int(leaf * size)


def between_pages_in_order(count: int) -> Iterator[int]:
    for page in range(count):
        yield page
        yield _chance.randrange(PAGES)


CASES: dict[str, Callable[[], Iterator[int]]] = {
    "1,000 at random": lambda: at_random(1000),
    "4,000 at random": lambda: at_random(4000),
    "9,000 at random, memory for 96 MiB": lambda: at_random(9000),
    "6,000 at random within 64 MiB": lambda: at_random(6000, (64 << 20) // PAGE),
    "runs of 8 pages": lambda: runs(500, lambda: 8),
    "runs of 64 pages": lambda: runs(150, lambda: 64),
    "each 64th page": lambda: iter(range(0, PAGES, 64)),
    "in order": lambda: iter(range(PAGES // 4)),
    "skewed": lambda: skewed(4000),
    "down a tree": lambda: down_a_tree(1500),
    "runs of 2.3 pages on average": lambda: runs(1500, geometric),
    "at random, between pages in order": lambda: between_pages_in_order(2000),
    "runs of 8 pages, backward": lambda: runs(500, lambda: 8, step=-1),
    "records of 4 pages, at multiples of 4": lambda: runs(1000, lambda: 4, aligned=4),
}


def _read_bytes() -> int:
    return int(Path("/proc/self/io").read_text().partition("\nread_bytes: ")[2].split()[0])


def main(path: str, case: str, *options: str) -> None:
    place = mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ)
    if "hint" in options:
        place.madvise(mmap.MADV_RANDOM)
    touches = list(CASES[case]())
    if "wait" in options:
        print("ready", flush=True)
        sys.stdin.readline()
    pause, waited = SECONDS / len(touches), 0.0
    faults, read, due = resource.getrusage(resource.RUSAGE_SELF).ru_majflt, _read_bytes(), time.perf_counter()
    for page in touches:
        began = time.perf_counter()
        place[page * PAGE]
        took = time.perf_counter() - began
        waited += took if took > CACHED_SECONDS else 0.0
        due += pause
        time.sleep(max(0.0, due - time.perf_counter()))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults
    print(json.dumps({"bytes": _read_bytes() - read, "waits": faults, "seconds": waited}), flush=True)
    if "wait" not in options:
        time.sleep(SECONDS / 4)


if __name__ == "__main__":
    main(*sys.argv[1:])

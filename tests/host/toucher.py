# SPDX-License-Identifier: GPL-2.0-only
"""A program that maps a file and touches its pages as it is told to, for tests to look at.

Standard input: ``random N``, ``scan`` or ``page N``, a line each, answered by a line; ``close`` closes the descriptor,
and ``open`` opens the file once more. ``read`` reads the second half by calls; ``hint`` gives that for random access;
``threads N`` starts so many, which wait; ``wait`` sleeps for a second. ``again N`` touches all of it N times, unmapped
before: a fault maps 16 pages. ``waste N`` begins with nothing mapped, touches pages at random for N seconds, and has
the page cache forget what is read beside them.
"""

import mmap
import os
import random
import sys
import threading
import time
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def drop(path: Path) -> None:
    """Let the page cache forget a file, as far as nobody maps its pages."""
    handle = os.open(path, os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def main(path: Path, hint: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    place = mmap.mmap(handle, 0, prot=mmap.PROT_READ)
    if hint == "hint":
        place.madvise(mmap.MADV_RANDOM)
    pages = len(place) // PAGE
    numbers = random.Random(1)
    print(os.getpid(), flush=True)
    for line in sys.stdin:
        verb, _, number = line.strip().partition(" ")
        if verb == "close":
            os.close(handle)
            for other in Path("/proc/self/fd").iterdir():  # Python's mmap keeps one of its own
                if other.resolve() == path:
                    os.close(int(other.name))
        elif verb == "open":
            os.open(path, os.O_RDONLY)
        elif verb == "anew":  # under another number
            handle = os.open(path, os.O_RDONLY)
            for other in Path("/proc/self/fd").iterdir():
                if other.resolve() == path and int(other.name) != handle:
                    os.close(int(other.name))
        elif verb == "read":
            os.pread(handle, len(place) // 2, len(place) // 2)
        elif verb == "hint":
            place.madvise(mmap.MADV_RANDOM)
        elif verb == "waste":
            place.madvise(mmap.MADV_DONTNEED)
            until = time.monotonic() + int(number)
            while time.monotonic() < until:
                drop(path)
                for _ in range(5):
                    place[numbers.randrange(pages) * PAGE]
                time.sleep(0.05)
        elif verb == "again":
            for _ in range(int(number)):
                place.madvise(mmap.MADV_DONTNEED)
                for page in range(0, pages, 16):
                    place[page * PAGE]
        elif verb == "wait":
            time.sleep(1)
        elif verb == "threads":
            for _ in range(int(number)):
                threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        elif verb == "page":
            place.madvise(mmap.MADV_DONTNEED)
            drop(path)
            place[int(number) * PAGE]
            place.madvise(mmap.MADV_DONTNEED)  # so that others can have it forgotten
        else:
            count = int(number or pages)
            chosen = [numbers.randrange(pages) for _ in range(count)] if verb == "random" else range(count)
            for page in chosen:
                place[page * PAGE]
        print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")

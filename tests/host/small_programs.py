# SPDX-License-Identifier: GPL-2.0-only
"""Five small programs that read a file, for the tools to judge: ``small_programs.py NAME FILE``.

They need Python's standard library alone. Each keeps what it has mapped for a while, so that a look finds it. At the
end it says how long it took.
"""

import mmap
import os
import random
import sys
import time

PAGE = os.sysconf("SC_PAGE_SIZE")
TOUCHES = 150
KEPT_SECONDS = 2
OPENERS = 15


def mapped(path: str) -> mmap.mmap:
    with open(path, "rb") as stream:  # noqa: PTH123 as short programs do it
        return mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)


def touch_at_random(path: str) -> None:
    place, numbers = mapped(path), random.Random(1)
    for _ in range(TOUCHES):
        place[numbers.randrange(len(place) // PAGE) * PAGE]
        time.sleep(0.01)
    time.sleep(KEPT_SECONDS)


def touch_in_order(path: str) -> None:
    place = mapped(path)
    for page in range(len(place) // PAGE):
        place[page * PAGE]
    time.sleep(KEPT_SECONDS)


def read_by_calls(path: str) -> None:
    handle, numbers = os.open(path, os.O_RDONLY), random.Random(1)
    for _ in range(TOUCHES):
        os.pread(handle, PAGE, numbers.randrange(os.fstat(handle).st_size // PAGE) * PAGE)
        time.sleep(0.01)


def open_often(path: str) -> None:
    places, numbers = [mapped(path) for _ in range(OPENERS)], random.Random(1)
    for touch in range(TOUCHES):
        place = places[touch % OPENERS]
        place[numbers.randrange(len(place) // PAGE) * PAGE]
        time.sleep(0.01)
    time.sleep(KEPT_SECONDS)


def touch_what_fits(path: str) -> None:
    """More often than the file has windows."""
    place, numbers = mapped(path), random.Random(1)
    for _ in range(20 * TOUCHES):
        place[numbers.randrange(len(place) // PAGE) * PAGE]
        time.sleep(0.0005)
    time.sleep(KEPT_SECONDS)


PROGRAMS = {
    "random": touch_at_random,
    "sequential": touch_in_order,
    "pread": read_by_calls,
    "openers": open_often,
    "fits": touch_what_fits,
}

if __name__ == "__main__":
    began = time.monotonic()
    PROGRAMS[sys.argv[1]](sys.argv[2])
    print(f"took {time.monotonic() - began:.3f} s")

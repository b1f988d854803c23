# SPDX-License-Identifier: GPL-2.0-only
"""A short probe of the disk under one file: what its requests take now, while the disk does other work as well.

It reads at most 16 MiB, one read at a time, for half a second, past the page cache. Every second read follows a
pause. It writes and sets nothing, but if a page that it reads is dirty, that is written first. ``probe.py`` measures
thoroughly, and takes ten times as long.
"""

from __future__ import annotations

import math
import os
import random
import time
from contextlib import suppress
from pathlib import Path
from statistics import mean, median, stdev

from foliohost.costs import fit
from foliohost.errors import NoProbe
from foliohost.estimates import PAUSE_SECONDS, DiskCost
from foliohost.files import open_regular
from foliohost.places import LEAST_BYTES
from foliohost.probe import scattered
from foliohost.processes import PAGE_BYTES

SECONDS = 0.5
MOST_BYTES = 16 << 20

_SIZES = tuple(max(1, kib * 1024 // PAGE_BYTES) for kib in (4, 64, 128))
_LEAST_ROUNDS = 4
_TRIES = 100
"""To find data in a file with holes."""
_TRIMMED = 10
"""Of the times, one in so many at either end is left out, and at least one."""
_CERTAIN = 2
"""Standard errors, below which it may be chance that reads take longer after a pause."""


def glimpse(path: Path, seconds: float = SECONDS) -> DiskCost:
    """What requests and pages take. NoProbe says why that cannot be told."""
    try:
        handle = open_regular(path, os.O_DIRECT)
    except OSError as error:
        raise NoProbe(f"{path} cannot be read past the page cache: {error.strerror}.") from error
    try:
        if (size := os.fstat(handle).st_size) < LEAST_BYTES:
            raise NoProbe(f"{path} is smaller than {LEAST_BYTES >> 20} MiB.")
        return _cost(path, handle, size, seconds)
    except OSError as error:
        raise NoProbe(f"{path} cannot be read past the page cache: {error.strerror}.") from error
    finally:
        os.close(handle)


def _cost(path: Path, handle: int, size: int, seconds: float) -> DiskCost:
    buffer = scattered(max(_SIZES))
    times: dict[int, list[float]] = {pages: [] for pages in _SIZES}
    rested: dict[int, list[float]] = {pages: [] for pages in _SIZES}
    until, read = time.monotonic() + seconds, 0
    while len(times[_SIZES[-1]]) < _LEAST_ROUNDS or (time.monotonic() < until and read < MOST_BYTES):
        for pages in random.sample(_SIZES, len(_SIZES)):
            time.sleep(PAUSE_SECONDS)
            for each in (rested, times):
                place = _place(handle, size, pages * PAGE_BYTES)
                if place is None:
                    raise NoProbe(f"{path} is mostly holes.")
                before = time.perf_counter_ns()
                read += os.preadv(handle, [buffer[: pages * PAGE_BYTES]], place)
                each[pages].append((time.perf_counter_ns() - before) / 1000)
    longer = [late - soon for pages in _SIZES for late, soon in zip(rested[pages], times[pages])]
    idle_us = median(longer)
    if idle_us < _CERTAIN * stdev(longer) / math.sqrt(len(longer)):
        idle_us = 0.0
    return DiskCost(*fit({pages: _typical(each) for pages, each in times.items()}), idle_us)


def _place(handle: int, size: int, length: int) -> int | None:
    """Where a read of that length begins and ends in data: of a hole, the disk reads nothing."""
    for _ in range(_TRIES):
        with suppress(OSError):  # there is none behind it
            data = os.lseek(handle, random.randrange(size - length), os.SEEK_DATA)
            place = -(-data // PAGE_BYTES) * PAGE_BYTES
            end = place + length - PAGE_BYTES
            if end + PAGE_BYTES <= size and os.lseek(handle, end, os.SEEK_DATA) == end:
                return place
    return None


def _typical(times: list[float]) -> float:
    """The mean without the extremes: a program waits for slow reads as well, but one may be chance."""
    cut = max(1, len(times) // _TRIMMED)
    return mean(sorted(times)[cut : len(times) - cut])

# SPDX-License-Identifier: GPL-2.0-only
"""Which processes of this machine are worth watching: those that read most, and map a large file on a disk.

A survey is cheap for the machine. The counters of a process take no lock of it. Its memory map does, and so maps are
read of few processes, those first that have just read most.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from foliohost.devices import find_device
from foliohost.errors import NotPermitted, UsageError
from foliohost.groups import paths_of
from foliohost.libc import is_btrfs
from foliohost.processes import Counters, Mapping, all_processes, counters, mappings, seen_by
from foliohost.shares import LITTLE_BYTES

MOST_PROCESSES = 16
"""That are watched."""
MOST_MAPS = 128
"""Memory maps that are read: some milliseconds each."""
_WAIT = 5
"""A survey waits for this part of the time of a look."""
_STEP, _SHORT_STEP, _STEP_SECONDS = 30, 10, 0.5
"""Each of its three steps takes this part of it at most, but may take half a second if that is the second part."""


@dataclass(frozen=True)
class Survey:
    """The processes to watch, and how many others there may be."""

    groups: dict[int, str]
    """The processes to watch, the one that read most first, and the control group of each."""
    hidden: int = 0
    """Processes that do not tell us what they do, being of other users."""
    left_out: int = 0
    """Processes that read from disks and that a bound keeps from being watched, or that there was no time to ask."""


def survey(seconds: float, most: int = MOST_PROCESSES) -> Survey:
    """Find at most so many processes to watch, in at most half of a look that takes ``seconds``."""
    step = min(seconds / _SHORT_STEP, max(seconds / _STEP, _STEP_SECONDS))
    pids = [pid for pid in all_processes() if pid != os.getpid()]
    random.shuffle(pids)  # where there is no time for all, each is asked in one of the next surveys
    before, hidden = _counted(pids, time.monotonic() + step)
    time.sleep(seconds / _WAIT)
    after, _ = _counted(before, time.monotonic() + step)
    done = {pid: now.since(before[pid]) for pid, now in after.items()}
    busiest = sorted(done, key=lambda pid: (done[pid].read_bytes, done[pid].major_faults, after[pid].read_bytes))
    busiest.reverse()
    chosen, small = _chosen(busiest, most, time.monotonic() + step)
    passed = sum(done[pid].read_bytes > 0 for pid in done.keys() - chosen - small) + len(before) - len(after)
    groups = {pid: control_group(pid) for pid in chosen}
    return Survey(groups, hidden, passed + len(pids) - len(before) - hidden)


def _counted(pids: Iterable[int], end: float) -> tuple[dict[int, Counters], int]:
    """What each process has done so far, nothing if it has ended, and how many do not tell us.

    No more are asked once the clock says ``end``.
    """
    found: dict[int, Counters] = {}
    hidden = 0
    for pid in pids:
        if time.monotonic() >= end:
            break
        try:
            found[pid] = counters(pid)
        except NotPermitted:
            hidden += 1
        except (UsageError, OSError):
            found[pid] = Counters()
    return found, hidden


def _chosen(busiest: Sequence[int], most: int, end: float) -> tuple[list[int], set[int]]:
    """The first processes that map large files, and those that were asked and do not."""
    chosen: list[int] = []
    small: set[int] = set()
    for pid in busiest[:MOST_MAPS]:
        if len(chosen) == most or time.monotonic() >= end:
            break
        if maps_large_file(pid):
            chosen.append(pid)
        else:
            small.add(pid)
    return chosen, small


def maps_large_file(pid: int) -> bool:
    """Whether a process maps 4 MiB or more of a data file on a disk; not if it has ended, or may not be asked."""
    sizes: dict[tuple[str, int], int] = {}
    texts = set()
    pieces: list[Mapping] = []
    with suppress(UsageError, NotPermitted):
        pieces = mappings(pid)
    known = {piece.file: piece for piece in pieces}
    for piece in pieces:
        sizes[piece.file] = sizes.get(piece.file, 0) + piece.end - piece.start
        if piece.text:
            texts.add(piece.file)
    large = (file for file, size in sizes.items() if size >= LITTLE_BYTES and file not in texts)
    return any(_on_disk(file[0], is_btrfs(seen_by(pid, known[file]))) for file in large)


@cache
def _on_disk(device: str, btrfs: bool) -> bool:
    """Whether what has this number, MAJOR:MINOR, is read ahead. tmpfs is not."""
    major, minor = map(int, device.split(":"))
    return find_device(major, minor, btrfs) is not None


def control_group(pid: int) -> str:
    """The path of a process's control group, of version 1 that of its memory; empty if it has ended."""
    paths = paths_of(pid)
    if not paths:
        return ""
    unified = paths.get("", "/")
    return unified if unified != "/" else paths.get("memory", unified)

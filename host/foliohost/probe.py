# SPDX-License-Identifier: GPL-2.0-only
"""Measure what reads of several sizes take on a disk: direct reads of random places in files that hold data.

Dirty pages of the files are written before, and nothing is set. No right is needed but to read the files. The reads go
past the page cache into pages that are scattered as those of the page cache are: a disk that gets one contiguous buffer
is faster.
"""

from __future__ import annotations

import mmap
import os
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median

from foliohost.costs import Cost, cost
from foliohost.devices import HostDevice, device_under
from foliohost.errors import FolioError, NoProbe, UsageError
from foliohost.places import BLOCK_BYTES, Places, places_of
from foliohost.processes import PAGE_BYTES, counters

SIZES = tuple(kib * 1024 // PAGE_BYTES for kib in (4, 16, 32, 64, 128, 256, 512, 1024) if kib * 1024 >= PAGE_BYTES)
"""In pages, read one at a time."""
DEEP_SIZES = (SIZES[0], SIZES[3])
"""In pages, read several at a time; with pages of 4 KiB, 4 and 64 KiB."""
DEPTHS = (2, 4, 8)
DEEPEST = 16
"""Reads in flight. Each round has this depth and one of the others."""

_LEAST_ROUNDS = 4
_ROUNDS = 16
_WARM_UP = 16
_SECTOR = 512
# Parts of the time. What they leave is for opening files and for arithmetic.
_TWICE, _SINGLE, _DEEP = 0.04, 0.52, 0.32


@dataclass
class Probe:
    """What was read, and how long that took. Times are in microseconds; those of a round are its medians."""

    files: list[Path]
    device: HostDevice
    seconds: float = 0.0
    reads: int = 0
    read_bytes: int = 0
    times: dict[int, list[float]] = field(default_factory=lambda: {pages: [] for pages in SIZES})
    """By pages: of one read at a time, for each round."""
    deep_times: dict[int, dict[int, list[float]]] = field(
        default_factory=lambda: {depth: {pages: [] for pages in DEEP_SIZES} for depth in (*DEPTHS, DEEPEST)}
    )
    """By depth and pages: the time over the number of reads, for each round."""
    first_us: float = 0.0
    """Of reads of a page at places that were not read before."""
    again_us: float = 0.0
    """Of the same places right after that."""
    deepest_seconds: float = 0.0
    """With ``DEEPEST`` reads in flight."""
    deepest_processor_seconds: float = 0.0
    """Of this process in that time."""
    waited_seconds: float = 0.0
    """That this thread was ready to run and had no processor."""
    data_bytes: int = 0
    """Of the files, in blocks that could be read."""
    size_bytes: int = 0
    """Of the files in all."""
    reached_bytes: int | None = None
    """What the kernel has sent to disks for us; None where it does not count that."""
    others_read_bytes: int = 0
    """What else was read of the device meanwhile."""
    others_writes: int = 0
    """Requests."""

    @cached_property
    def cost(self) -> Cost:
        """Of one read at a time, which is what a program waits for at a fault, and so what request_kb is about.

        With many in flight requests are cheaper on nearly all disks, because their latencies overlap. For programs of
        one thread that figure is too low, which costs more than one that is too high.
        """
        return cost(self.times)

    @cached_property
    def deep(self) -> Cost:
        """Of ``DEEPEST`` reads at a time: what each adds to the whole."""
        return cost(self.deep_times[DEEPEST])


def measure(path: Path, seconds: float, seed: int) -> Probe:
    """Read random places of a file, or of the largest files below a directory, for about so many seconds.

    UsageError, NotPermitted or NoProbe say why that cannot be.
    """
    started = time.monotonic()
    device = _device(path)
    with places_of(path, seed) as (places, files):
        probe = Probe(files, device, data_bytes=places.data_bytes, size_bytes=places.size_bytes)
        waited, before, reached = _waited(), _requests(device), _reached()
        _Reading(places, probe, seed).run(started, seconds)
        _count_others(probe, before)
    now = _reached()
    probe.reached_bytes = now - reached if now is not None and reached is not None else None
    probe.waited_seconds = _waited() - waited
    probe.seconds = time.monotonic() - started
    return probe


def _device(path: Path) -> HostDevice:
    if not (path.is_file() or path.is_dir()):
        raise UsageError(f"{path} is neither a file nor a directory." if path.exists() else f"There is no {path}.")
    found = device_under(path, path.stat())
    if not found:
        raise NoProbe(f"There is no disk under {path}: its file system is in memory, or has no readahead.")
    return found


def _waited() -> float:
    """Seconds that this thread was ready to run and had no processor; 0 where the kernel does not count them."""
    with suppress(OSError, IndexError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    return 0.0


def _reached() -> int | None:
    """Bytes that the kernel has read from disks for this process; None where it does not count them."""
    with suppress(FolioError):
        return counters(os.getpid()).read_bytes
    return None


def _requests(device: HostDevice) -> tuple[int, int] | None:
    """Bytes read and requests to write since boot; None of what is no block device."""
    with suppress(OSError, IndexError):
        fields = [int(word) for word in (device.attribute.parents[1] / "stat").read_text().split()]
        return fields[2] * _SECTOR, fields[4]
    return None


def _count_others(probe: Probe, before: tuple[int, int] | None) -> None:
    after = _requests(probe.device)
    if before and after:
        probe.others_read_bytes = max(0, after[0] - before[0] - probe.read_bytes)
        probe.others_writes = after[1] - before[1]


def scattered(pages: int) -> memoryview:
    """Memory whose neighbouring pages are no neighbours on the machine's memory: touched in random order."""
    memory = mmap.mmap(-1, pages * PAGE_BYTES)
    with suppress(OSError):  # a kernel that has no huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    order = list(range(pages))
    random.Random(pages).shuffle(order)
    for page in order:
        memory[page * PAGE_BYTES] = 1
    return memoryview(memory)


class _Reading:
    """The reads of one probe, in rounds that have all sizes and depths in random order, so that drift hits all."""

    def __init__(self, places: Places, probe: Probe, seed: int) -> None:
        self._places = places
        self._probe = probe
        self._order = random.Random(seed)
        self._buffer = scattered(BLOCK_BYTES // PAGE_BYTES)
        self._deep_buffers = [scattered(DEEP_SIZES[-1]) for _ in range(DEEPEST)]

    def run(self, started: float, seconds: float) -> None:
        self._read_twice(seconds * _TWICE)
        rounds, longest = 0, 0.0
        while rounds < _LEAST_ROUNDS or time.monotonic() + longest < started + seconds * 0.97:
            begun = time.monotonic()
            self._round(rounds, seconds / _ROUNDS)
            longest = max(longest, time.monotonic() - begun)
            rounds += 1

    def _round(self, number: int, seconds: float) -> None:
        parts = [(1, pages) for pages in SIZES]
        parts += [(depth, pages) for depth in (DEPTHS[number % len(DEPTHS)], DEEPEST) for pages in DEEP_SIZES]
        self._order.shuffle(parts)
        for depth, pages in parts:
            if depth == 1:
                self._probe.times[pages].append(self._one_at_a_time(pages, seconds * _SINGLE / len(SIZES)))
            else:
                self._probe.deep_times[depth][pages].append(self._several(depth, pages, seconds * _DEEP / 4))

    def _one_at_a_time(self, pages: int, seconds: float) -> float:
        until = time.monotonic() + seconds
        taken = [self._read(self._buffer, self._places.pick(pages * PAGE_BYTES), pages)]
        while time.monotonic() < until:
            taken.append(self._read(self._buffer, self._places.pick(pages * PAGE_BYTES), pages))
        self._count(len(taken), pages)
        return median(taken)

    def _read(self, buffer: memoryview, place: tuple[int, int], pages: int) -> float:
        """How long it took, in microseconds; NoProbe if it fails, or ends early because the file was cut."""
        before = time.perf_counter_ns()
        try:
            got = os.preadv(place[0], [buffer[: pages * PAGE_BYTES]], place[1])
        except OSError as error:
            raise NoProbe(f"A direct read failed: {error.strerror}.") from error
        taken = time.perf_counter_ns() - before
        if got != pages * PAGE_BYTES:
            raise NoProbe("A file became shorter while it was read.")
        return taken / 1000

    def _several(self, depth: int, pages: int, seconds: float) -> float:
        """The time over the number of reads, in microseconds, of so many threads that read for so long."""
        ends: list[tuple[int, float]] = []
        failures: list[FolioError] = []
        begun, used = time.monotonic(), time.process_time()

        def work(buffer: memoryview) -> None:
            reads = 0
            try:
                while not reads or time.monotonic() < begun + seconds:
                    self._read(buffer, self._places.pick(pages * PAGE_BYTES), pages)
                    reads += 1
            except FolioError as error:
                failures.append(error)
            ends.append((reads, time.monotonic()))

        threads = [threading.Thread(target=work, args=(buffer,)) for buffer in self._deep_buffers[:depth]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        passed = time.monotonic() - begun
        if depth == DEEPEST:
            self._probe.deepest_seconds += passed
            self._probe.deepest_processor_seconds += time.process_time() - used
        reads = sum(number for number, _ in ends)
        self._count(reads, pages)
        return (max(end for _, end in ends) - begun) * 1e6 / reads

    def _read_twice(self, seconds: float) -> None:
        """Pages at places that were not read before, and the same places right after that."""
        for _ in range(_WARM_UP):
            self._read(self._buffer, self._places.pick(PAGE_BYTES), 1)
        first: dict[tuple[int, int], float] = {}
        until = time.monotonic() + seconds
        while not first or time.monotonic() < until:
            place = self._places.pick(PAGE_BYTES)
            first.setdefault(place, self._read(self._buffer, place, 1))
        again = [self._read(self._buffer, place, 1) for place in first]
        self._probe.first_us, self._probe.again_us = median(first.values()), median(again)
        self._count(_WARM_UP + len(first) + len(again), 1)

    def _count(self, reads: int, pages: int) -> None:
        self._probe.reads += reads
        self._probe.read_bytes += reads * pages * PAGE_BYTES

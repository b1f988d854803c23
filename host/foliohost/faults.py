# SPDX-License-Identifier: GPL-2.0-only
"""What faults of some processes read of each file, by the kernel's tracepoints. Takes root."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter

from foliohost.errors import FolioError
from foliohost.mapped import MappedFile
from foliohost.processes import PAGE_BYTES
from foliohost.ringbuffer import Event, filled, first_time
from foliohost.runs import RunCounts, RunsSeen
from foliohost.touches import ADD, FAULT, FIELDS, MAP, File, device_name, device_number
from foliohost.tracefs import Instance, tracefs

BUFFERS_KIB = 8 << 10
"""In memory, of all processors together."""
MOST_LOST = 0.05
"""If more of the events are lost, what the others tell is not taken."""

_DRAIN_PERIOD, _SHORTEST_PERIOD = 0.1, 0.005
_MUCH = 8
"""A buffer of which this part was full is emptied again at once."""
_BATCH = 4096
"""Events that are sorted together, at least: an event takes seven times as much memory as on its page."""
_END = 1 << 64
"""After all events, in nanoseconds."""
_ALIKE = "Files in several subvolumes of btrfs share device and inode in tracepoints: their reads are estimated."


@dataclass(frozen=True)
class FileFaults:
    """What faults did with a file."""

    read_pages: int = 0
    """That they brought into the page cache: their own, and those read ahead."""
    major_faults: int = 0
    """Those that read their own page."""
    runs: RunsSeen | None = None
    """How they went on from block to block; None if there were none."""


class FaultCounts:
    """What events come to, each to be given to ``take`` in order. Memory grows with files and tasks, not with events.

    What comes into the cache between a task's fault and what the fault maps then is read for that fault.
    """

    def __init__(self, but: Iterable[int] = ()) -> None:
        self.read_pages: dict[File, int] = {}
        self.major_faults: dict[File, int] = {}
        self.runs: defaultdict[File, RunCounts] = defaultdict(RunCounts)
        self.events = 0
        self.but = set(but)
        """Tasks whose faults do not count."""
        self._begun: set[File] = set()
        self._missing: dict[int, tuple[File, int, bool]] = {}
        """By task: the file and the page of its fault, and whether what comes into the cache now is for that."""

    def take(self, events: Sequence[Event]) -> None:
        self.events += len(events)
        missing, but, runs = self._missing, self.but, self.runs
        for _, name, fields in events:
            task = fields[0]
            if name == MAP:  # most of them
                if task in missing:
                    del missing[task]
                if (counts := runs.get((fields[1], fields[2]))) and task not in but:
                    counts.map(fields[3], fields[4])
            elif task in but:
                continue
            elif name == FAULT:
                file, page = (fields[1], fields[2]), fields[3]
                last = missing.get(task)
                missing[task] = file, page, not last or last[:2] != (file, page)
                self.read_pages.setdefault(file, 0)
                runs[file].miss(page)
            elif task in missing:
                self._add(missing[task], *fields[1:])

    def begin(self, file: File) -> None:
        """Count anew what is done with a file, but for one that others look at as well already."""
        if file not in self._begun:
            self._begun.add(file)
            self.major_faults.pop(file, None)
            self.runs.pop(file, None)
            if file in self.read_pages:  # else nobody knows whether events tell of it by that number
                self.read_pages[file] = 0

    def _add(self, fault: tuple[File, int, bool], device: int, inode: int, first: int, order: int) -> None:
        file, page, reads = fault
        if not reads or file != (device, inode):
            return  # by read() or write()
        self.read_pages[file] += 1 << order
        if first <= page < first + (1 << order):
            self.major_faults[file] = self.major_faults.get(file, 0) + 1

    def by_file(self) -> dict[tuple[str, int], FileFaults]:
        """By device and inode as ``Mapping.file`` has them."""
        return {
            (device_name(file[0]), file[1]): FileFaults(
                pages, self.major_faults.get(file, 0), self.runs[file].seen() if file in self.runs else None
            )
            for file, pages in self.read_pages.items()
        }


class FaultTrace:
    """The faults of processes that are ``followed``, counted as they come."""

    def __init__(self, instance: Instance, but: Iterable[int] = ()) -> None:
        self._instance = instance
        self._counts = FaultCounts(but)
        self._pages: list[bytes] = []
        """Those that others may still come before: they were not there yet when the others were fetched."""
        self._early: list[Event] = []
        """Events of other pages, of which the same is true."""
        self._beginnings: deque[tuple[int, File]] = deque()
        """Times in order, and the file that is counted anew from each."""
        self._fetched = 0
        """When that began last, in nanoseconds."""
        self._failed = ""
        self._period = _DRAIN_PERIOD
        """Seconds until the next ``drain``."""
        self.longest = 0.0
        """Seconds that it took at most."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._drain_on, daemon=True)

    @property
    def watcher(self) -> int:
        """The process that cleans up after us."""
        return self._instance.watcher

    def begin(self) -> None:
        """Count from now on, whatever the caller does meanwhile. No program is to be started then: that forks."""
        if self._thread.ident is None:
            self._thread.start()
        if self._thread.native_id:  # it is followed where we are, as all that we start
            self._counts.but.add(self._thread.native_id)

    def begin_with(self, file: tuple[str, int]) -> None:
        """Count what faults do with a file, as ``Mapping.file`` has it, from now on, unless that was asked before."""
        self._beginnings.append((time.monotonic_ns(), (device_number(file[0]), file[1])))

    def end(self) -> None:
        """Count no more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _drain_on(self) -> None:
        while not self._over.wait(self._period):
            self.drain()

    def drain(self) -> None:
        """Count what there is. What the kernel has no room for until then is lost."""
        if self._failed:
            return
        began = time.monotonic_ns()
        try:
            self._count(self._fetched)
        except OSError as error:
            self._failed = f"The kernel's trace cannot be read: {error.strerror}."
            with suppress(OSError):
                self._instance.stop()
        self._fetched = began
        self.longest = max(self.longest, (time.monotonic_ns() - began) / 1e9)

    def _count(self, until: int) -> None:
        """Fetch all, and count what came before a time.

        Pages are taken by their times, and their events as soon as no page can have earlier ones: so there are no more
        events in memory than on two pages of each processor, however many are fetched.
        """
        pages, self._pages = [(0, page) for page in self._pages], []
        left = most = 0
        for number, page in merge(pages, *(enumerate(each, 1) for each in self._instance.fetch()), key=_first_time):
            most = max(most, number)
            if first_time(page) >= until:
                self._pages.append(filled(page))
                continue
            if len(self._early) > 2 * left + _BATCH:
                left = self._take(first_time(page))
            self._early += self._instance.parsed(page)
        self._take(until)
        self._period = _SHORTEST_PERIOD if most * PAGE_BYTES * _MUCH > self._instance.buffer_bytes else _DRAIN_PERIOD

    def _take(self, until: int) -> int:
        """Count the early events before a time; returns how many others there are."""
        self._early.sort(key=itemgetter(0))
        while self._beginnings and self._beginnings[0][0] < until:
            moment, file = self._beginnings.popleft()
            self._take_before(moment)
            self._counts.begin(file)
        self._take_before(until)
        return len(self._early)

    def _take_before(self, until: int) -> None:
        counted = bisect_left(self._early, (until,))
        self._counts.take(self._early[:counted])
        del self._early[:counted]

    def faults(self) -> tuple[dict[tuple[str, int], FileFaults], str]:
        """End recording, and tell of each file, by device and inode as ``Mapping.file`` has them; and what is doubtful.

        FolioError if events were lost that matter.
        """
        self.end()
        if self._failed:
            raise FolioError(self._failed)
        try:
            self._instance.stop()
            self._count(_END)
            lost = self._instance.lost()
        except OSError as error:
            raise FolioError(f"The kernel's trace cannot be read: {error.strerror}.") from error
        every = self._counts.events + lost
        share = f"The kernel had no room for {lost:,} of {every:,} events ({lost / max(every, 1):.1%})"
        if lost > every * MOST_LOST:
            raise FolioError(f"{share}, too many to count by the others.")
        return self._counts.by_file(), f"{share}: reads and waits may be more by about that share." if lost else ""


def _first_time(numbered: tuple[int, bytes]) -> int:
    return first_time(numbered[1])


@contextmanager
def followed(pids: Collection[int], but: int | None = None) -> Iterator[FaultTrace]:
    """The faults of some processes, and of what these start, while the block lasts. Nothing stays enabled behind it.

    ``but`` is one of the processes that is followed for what it starts alone. FolioError where the kernel has no such
    events, or somebody who is not root asks.
    """
    if not (tracefs() / "events" / FAULT).is_dir():
        raise FolioError(f"This kernel has no tracepoint {FAULT.partition('/')[2]}; Linux since 6.11 has.")
    # A fault that has read its page mostly ends in MAP; what comes into the cache after that is not its own.
    fields = {name: FIELDS[name] for name in (ADD, FAULT, MAP)}
    with Instance(fields, buffers_kib=BUFFERS_KIB) as instance:
        instance.start(pids)
        trace = FaultTrace(instance, () if but is None else (but,))
        try:
            yield trace
        finally:
            trace.end()


def reading_seconds(trace: FaultTrace | str) -> float:
    """How long ``faults_of`` may take."""
    return trace.longest if isinstance(trace, FaultTrace) else 0.0


@dataclass(frozen=True)
class Traced:
    """What tracepoints told."""

    files: Mapping[MappedFile, FileFaults]
    untraced: str = ""
    """Why they tell nothing; empty if they do."""
    doubt: str = ""
    """What is doubtful of that; empty if nothing is."""


def faults_of(trace: FaultTrace | str, files: Collection[MappedFile]) -> Traced:
    """What faults did with each of these files, as far as that is known."""
    if isinstance(trace, str):
        return Traced({}, trace)
    try:
        found, doubt = trace.faults()
    except FolioError as error:
        return Traced({}, str(error))
    known = with_idle(found, {file[:2] for file in files})
    volumes = Counter(file[:2] for file in set(files) if file[2])
    alike = {number for number, faults in known.items() if faults.read_pages and volumes[number] > 1}
    clear = known.keys() - alike
    told = {file: known[file[:2]] for file in files if file[:2] in clear}
    return Traced(told, "", " ".join(filter(None, (doubt, _ALIKE if alike else ""))))


def with_idle(
    found: dict[tuple[str, int], FileFaults], files: Collection[tuple[str, int]]
) -> dict[tuple[str, int], FileFaults]:
    """Those found, and files without events as without faults, if events of them would have the same numbers.

    Events of an overlay's files have the numbers of its layers: such files may be the others that were read. An
    overlay's number is 0:N, and no event has it.
    """
    others = any(file not in files for file, faults in found.items() if faults.read_pages)
    told = {device for device, _ in found}
    idle = (file for file in files if not others or file[0] in told or not file[0].startswith("0:"))
    return dict.fromkeys(idle, FileFaults()) | found

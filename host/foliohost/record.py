# SPDX-License-Identifier: GPL-2.0-only
"""Recording on this machine: what programs touch of mapped files, by tracepoints of whatever kernel runs here."""

from __future__ import annotations

import os
import signal
import time
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from types import FrameType
from typing import Any

from foliohost.errors import FolioError, UsageError
from foliohost.fault_around import fault_around_bytes
from foliohost.maps import Maps, memory_bytes, named, read_ahead_kb
from foliohost.pageset import PageSet
from foliohost.processes import PAGE_BYTES
from foliohost.spool import Spool
from foliohost.target import LiveTarget
from foliohost.touches import ADD, FAULT, FIELDS, MAP, USER, File, Touches, device_name
from foliohost.trace import Measured, Trace, TraceFile
from foliohost.tracefs import Instance, tracefs

LIMIT_BYTES = 256 << 20
_READ_PAGE_BYTES = 8
"""What a page that was read takes in a trace that is in memory."""
_DRAIN_SECONDS = 0.1
_LOOK_SECONDS = 1.0
_SHARE = 10
"""A look at mappings is followed by so many times its own length without one."""
_DEFAULT_AROUND = 65536
_CACHED = 0.1
"""The model begins with no page in memory: what a kernel read is not compared if more than this share was there."""
_MARKS = 256
"""How many times a trace has at most."""


@dataclass(frozen=True)
class LiveRecording:
    """What came of it."""

    trace: Trace
    reads: Trace | None
    """Of the same files, the pages that faults have read in place of those that were touched; None if not recorded."""
    cached: int
    """Pages that were touched and never read: they had been in memory before. 0 if reads were not recorded."""
    full: bool
    """Whether it was over because of its size."""
    full_disk: str
    """A sentence if it was over because a disk was full; else empty."""
    located: bool
    """Whether the page of each fault is known; else it is the first of those that were mapped along."""


def record(
    target: LiveTarget,
    *,
    patterns: Sequence[str] = (),
    seconds: float | None = None,
    limit_bytes: int = LIMIT_BYTES,
    fine: bool = False,
    reads: bool = False,
    command: Sequence[str] = (),
) -> LiveRecording:
    """Record what a process, and those that it starts, touch of mapped files from now until it has ended.

    It is over earlier after ``seconds``, once events and kept mappings take ``limit_bytes``, once the disk is full, or
    by a signal that asks us to end. ``patterns`` name files; without any, all that are mapped count. ``fine`` lets
    faults map single pages meanwhile, on the whole machine. ``reads`` takes what is read as well, an event for each
    folio; both traces end where its pages take ``limit_bytes``. ``command`` is what the trace tells of what was run.

    FolioError where nothing can be recorded, as on a kernel without the tracepoints.
    """
    fields = _fields(tracefs(), fine, reads)
    names = named(patterns)
    if patterns and not names:
        raise UsageError(f"There is no file {' or '.join(patterns)}.")
    maps = Maps(keep=FAULT not in fields)
    available = memory_bytes(target.process)
    spool = Spool()
    with Instance(fields, fine) as instance, _asked_to_end() as asked:
        around = PAGE_BYTES if fine else fault_around_bytes() or _DEFAULT_AROUND
        duration = _watch(target, instance, spool, limit_bytes, maps, asked, seconds)
        lost = instance.lost()
    names |= named(patterns)

    def wanted(file: File) -> bool:
        return not patterns or file in names

    def locate(task: int, address: int, time: int) -> tuple[File, int] | None:
        found = maps.locate(task, address, time)
        return (found[0], found[1] // PAGE_BYTES) if found else None

    most = limit_bytes // _READ_PAGE_BYTES
    touches = Touches(wanted, PAGE_BYTES, around // PAGE_BYTES, locate if maps.keep else None, most)
    touches.take(spool.events(instance.parsed))
    kept = _Kept(touches, maps.names | names)
    common: dict[str, Any] = {
        "files": kept.files,
        "window": sum(file.pages for file in kept.files),
        "page_size": PAGE_BYTES,
        "lost": lost,
        "memory_bytes": available,
        "program": tuple(command),
    }
    facts = {"kernel": os.uname().release, "fault_around_bytes": around, "seconds": round(duration, 3)}
    trace, read, cached = kept.traces(common, facts, reads, fine)
    located = maps.keep or fine or USER in fields
    full = touches.full or spool.size + maps.size >= limit_bytes
    return LiveRecording(trace, read, cached, full, spool.full_disk, located)


def _watch(
    target: LiveTarget,
    instance: Instance,
    spool: Spool,
    limit_bytes: int,
    maps: Maps,
    asked: Sequence[int],
    seconds: float | None,
) -> float:
    """Record until it is over; the seconds that it took."""
    maps.look([target.process])
    instance.start([target.process])
    target.begin()
    start = looked = time.monotonic()
    took = 0.0
    while not (asked or target.ended() or (seconds and time.monotonic() - start >= seconds)):
        time.sleep(_DRAIN_SECONDS)
        spool.add(instance.fetch())
        if spool.size + maps.size >= limit_bytes or spool.full_disk:
            break
        now = time.monotonic()
        period = 0.0 if maps.keep or now - start < _LOOK_SECONDS else _LOOK_SECONDS
        if now - looked >= max(period, _SHARE * took):
            maps.look(instance.tasks())
            looked = time.monotonic()
            took = looked - now
    instance.stop()
    spool.add(instance.fetch())
    if signal.SIGTERM in asked:  # Ctrl-C gets to a program by itself
        target.end()
    duration = time.monotonic() - start
    maps.look(instance.tasks())
    return duration


def _fields(place: Path, fine: bool, reads: bool) -> dict[str, tuple[str, ...]]:
    """What to record on this kernel."""
    there = {name: fields for name, fields in FIELDS.items() if (place / "events" / name).is_dir()}
    if ADD not in there or (MAP not in there and USER not in there):
        raise FolioError("This kernel has no tracepoints of faults: x86_64 has them, and others since Linux 6.11.")
    wanted = {ADD} if reads else set()
    # With faults that map one page, those of files tell all, at half the cost.
    wanted |= {FAULT} if fine and FAULT in there else set(FIELDS) - {ADD}
    return {name: fields for name, fields in there.items() if name in wanted}


@contextmanager
def _asked_to_end() -> Iterator[list[int]]:
    """A list that is no longer empty once a signal has asked us to end."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Kept:
    """What a trace has of all that was recorded: files that were touched, in the order of their first touches."""

    def __init__(self, touches: Touches, names: Mapping[File, str]) -> None:
        self._touches = touches
        self._number = {old: new for new, old in enumerate(dict.fromkeys(touches.file_of))}
        self._touched = touches.file_of, touches.page_of, bytes(len(touches.page_of)), touches.time_of
        self._read = touches.read_file_of, touches.read_page_of, touches.read_order_of, touches.read_time_of
        most = Counter[int]()
        for files, pages, orders, _ in (self._touched, self._read):
            for file, page, order in zip(files, pages, orders):
                most[file] = max(most[file], page + (1 << order))
        known = {number: file for file, number in touches.files.items()}
        self.files = tuple(self._file(known[old], names, most[old]) for old in self._number)
        self._device_of = {old: known[old][0] for old in self._number}

    def _file(self, file: File, names: Mapping[File, str], pages: int) -> TraceFile:
        name = names.get(file)
        if name is None:
            return TraceFile(f"{device_name(file[0])} inode {file[1]}", pages)
        with suppress(OSError):
            pages = max(pages, -(-Path(name).stat().st_size // PAGE_BYTES))
        return TraceFile(name, pages)

    def traces(
        self, common: Mapping[str, Any], facts: Mapping[str, Any], reads: bool, fine: bool
    ) -> tuple[Trace, Trace | None, int]:
        """What was touched; where reads were recorded, what was read, and how many touched pages never were."""
        window_kb = self.read_ahead_kb()
        facts = {**facts, "read_ahead_kb": window_kb}
        trace = Trace(**common, **self._fields(*self._touched, facts))
        if not reads:
            return trace, None, 0
        read = Trace(**common, **self._fields(*self._read, {**facts, "reads": True}))
        touched = PageSet(trace.file_of, trace.page_of)
        cached = touched.missing(PageSet(read.file_of, read.page_of))
        # Faults that map one page make no hits, without which the kernel stops reading around: that is no stock kernel.
        if window_kb is not None and not fine and cached <= len(touched) * _CACHED:
            trace = replace(trace, measured=(self.measured(window_kb),))
        return trace, read, cached

    def _fields(
        self,
        files: array[int],
        pages: array[int],
        orders: Sequence[int],
        times: array[int],
        facts: Mapping[str, Any],
    ) -> dict[str, Any]:
        file_of, page_of, ends = array("I"), array("I"), array("Q")
        for file, page, order in zip(files, pages, orders):
            if file in self._number:
                file_of.extend(repeat(self._number[file], 1 << order))
                page_of.extend(range(page, page + (1 << order)))
            ends.append(len(page_of))
        start = self._touches.start or 0
        marks = [round((times[bisect_right(ends, at)] - start) / 1e6) for at in _marks(len(page_of))]
        return {"file_of": file_of, "page_of": page_of, "other": {"live": dict(facts), "times_ms": marks}}

    def read_ahead_kb(self) -> int | None:
        """Of the device whose files were touched most; None if it does not tell, or nothing was touched."""
        devices = Counter(map(self._device_of.__getitem__, self._touches.file_of))
        return next((read_ahead_kb(device) for device, _ in devices.most_common(1)), None)

    def measured(self, window_kb: int) -> Measured:
        """What the kernel did with that window."""
        found = self._touches
        return Measured(
            variant="off",
            read_ahead_kb=window_kb,
            read_bytes=sum(found.read_pages[file] for file in self._number) * PAGE_BYTES,
            read_requests=sum(found.requests[file] for file in self._number),
            major_faults=sum(found.majors[file] for file in self._number),
        )


def _marks(touches: int) -> Iterator[int]:
    """Which touches have their times in the trace: evenly spread, the first and the last among them."""
    steps = min(touches, _MARKS) - 1
    return (step * (touches - 1) // max(steps, 1) for step in range(steps + 1))

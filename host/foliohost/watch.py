# SPDX-License-Identifier: GPL-2.0-only
"""Look at processes again and again, and add up what came into the cache and what was mapped of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from foliohost import pages
from foliohost.bits import count_ones
from foliohost.devices import HostDevice, find_device, module_was_tried, windows_adapt
from foliohost.engines import engine_of
from foliohost.errors import NotPermitted, UsageError
from foliohost.faults import FaultTrace, FileFaults, faults_of
from foliohost.processes import PAGE_BYTES, Counters, Mapping, Tally, descriptors, mappings, runs, seen_by

_FIRST_PERIOD = 0.02
_LONGEST_PERIOD = 0.2
_DRAIN_PERIOD = 0.1
_SHARE = 10
"""A look is followed by so many times its own length without one."""


@dataclass(frozen=True)
class FileSeen:
    """What was seen of one mapped file."""

    path: str
    """As we see it; in another container, below ``/proc/PID/root``."""
    device: str
    rotational: bool | None
    window_kb: int
    """That the device gave to files opened when this one was first seen, which may have another."""
    text: bool
    hint: str
    size_bytes: int
    rss_bytes: int
    pmd_mapped_bytes: int
    mapped_pages: int
    """That came into page tables: touched, or mapped around a touch."""
    places: int
    """Blocks of 64 KiB with such pages: at least one touch each."""
    cached_pages: int | None
    """That came into the page cache, whoever read or wrote them; None if that may not be known."""
    fresh_pages: int
    """Of these, those with a page beside them that was not cached either."""
    fault_pages: int | None
    """That faults of the processes brought into the cache, by tracepoints; None if these could not be followed."""
    major_faults: int | None
    """Likewise."""
    read_before: int
    """Bytes that the processes had read, of any file, when they were first seen to map this one."""
    resident_bytes: int | None
    """In the page cache at the end."""
    processes: tuple[int, ...]
    """That were seen to map it, at any look; those that live between two looks are missed."""
    open_in: tuple[int, ...]
    """Processes that have the file open as well."""
    alive: bool
    """Whether one of them still runs."""
    engine: str = ""
    come_and_gone: bool = False
    """Whether others had mapped it than those at the last look that met it: there may be more that no look met."""


@dataclass(frozen=True)
class Observation:
    """What processes did in a time."""

    seconds: float
    counted: Counters
    before: Counters
    """What they had done before; nothing of a command."""
    unseen: Counters
    """The part of ``counted`` after the last look at the page tables."""
    files: tuple[FileSeen, ...]
    machine_read_bytes: int
    """By everybody, of all block devices."""
    machine_major_faults: int
    page_bytes: int = PAGE_BYTES
    adaptive: bool = False
    """Whether our kernel or module decides what misses read."""
    module_tried: bool = False
    """Whether our module was tried on the kernel that runs here."""
    untraced: str = ""
    """Why tracepoints tell nothing; empty if they do."""


@dataclass
class _Watched:
    path: Path
    device: HostDevice
    window_kb: int
    cached: int | None
    read_before: int
    mapped: int = 0
    mapped_pages: int = 0
    places: int = 0
    cached_pages: int = 0
    fresh_pages: int = 0
    pieces: dict[int, list[Mapping]] = field(default_factory=dict)
    """At the last look."""
    processes: dict[int, None] = field(default_factory=dict)
    """That were seen to map it, in order."""


class Watch:
    """Processes under observation, from now on.

    ``pids`` tells which, at each look; ``only`` is the file that matters, if one does. With ``fresh``, the processes
    have mapped nothing yet. ``trace`` follows their faults, or says why that cannot be.
    """

    def __init__(
        self,
        pids: Callable[[], Iterable[int]],
        only: os.stat_result | None = None,
        fresh: bool = False,
        trace: FaultTrace | str = "Nobody asked for it.",
    ):
        self._pids = pids
        self._trace = trace
        self._only = only
        self._files: dict[tuple[str, int], _Watched | None] = {}
        self._mapped: set[tuple[str, int]] = set()
        """Also files that could not be looked at."""
        self._tally = Tally()
        self._began = time.monotonic()
        self._machine = _machine_counters()
        self._start = Counters() if fresh else self._tally.of(pids())
        self._counted = self._start
        self._baseline = not fresh
        self.look()
        self._baseline = False

    def run(self, seconds: float | None, ended: Callable[[], bool] = lambda: False) -> None:
        """Look until the time is over, or ``ended`` says so."""
        period = _FIRST_PERIOD
        while not ended():
            left = float("inf") if seconds is None else self._began + seconds - time.monotonic()
            if left <= 0:
                break
            self._wait(min(period, left))
            began = time.monotonic()
            self.look()
            period = max(min(2 * period, _LONGEST_PERIOD), _SHARE * (time.monotonic() - began))

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _DRAIN_PERIOD))
            if isinstance(self._trace, FaultTrace):
                self._trace.drain()

    def look(self) -> None:
        """Add up what is new since the last look."""
        pids = list(self._pids())
        counted = self._tally.of(pids)
        pieces: dict[tuple[str, int], dict[int, list[Mapping]]] = {}
        for pid in pids:
            try:
                found = mappings(pid)
            except (UsageError, NotPermitted):
                continue
            for mapping in found:
                pieces.setdefault(mapping.file, {}).setdefault(pid, []).append(mapping)
        if not pieces:  # a process that has ended has counters still, and maps nothing
            return
        self._counted = counted
        self._mapped |= pieces.keys()
        for key, by_pid in pieces.items():
            if key not in self._files:
                with suppress(OSError):  # its process has ended meanwhile: another may lead to it
                    self._files[key] = self._meet(by_pid)
            if file := self._files.get(key):
                self._update(file, by_pid)

    def finish(self, counted: Counters | None = None) -> Observation:
        """All that was seen; ``counted`` is what the processes had done when they ended, if that is known."""
        end = self._counted
        if counted:
            called, calls = max(counted.called_bytes, end.called_bytes), max(counted.calls, end.calls)
            end = replace(counted, called_bytes=called, calls=calls)
        traced, untraced = faults_of(self._trace, self._mapped)
        read, faults = _machine_counters()
        return Observation(
            seconds=time.monotonic() - self._began,
            counted=end.since(self._start),
            before=self._start,
            unseen=end.since(self._counted),
            files=tuple(_seen(file, traced.get(key)) for key, file in self._files.items() if file),
            machine_read_bytes=read - self._machine[0],
            machine_major_faults=faults - self._machine[1],
            adaptive=windows_adapt(),
            module_tried=module_was_tried(os.uname().version),
            untraced=untraced,
        )

    def _meet(self, by_pid: dict[int, list[Mapping]]) -> _Watched | None:
        """A file that is seen for the first time; None if no device is read for it, OSError if it is gone."""
        pid, (mapping, *_) = next(iter(by_pid.items()))
        path = _outlasting(pid, mapping.path)
        found = path.stat()
        if found.st_ino != mapping.inode or (self._only and not os.path.samestat(found, self._only)):
            return None
        device = find_device(os.major(found.st_dev), os.minor(found.st_dev))
        if not device:
            return None
        window_kb, there = device.read_ahead_kb, pages.cached(path)
        return _Watched(path, device, window_kb, there, self._tally.of(self._pids()).since(self._start).read_bytes)

    def _update(self, file: _Watched, by_pid: dict[int, list[Mapping]]) -> None:
        file.pieces = by_pid
        file.processes |= dict.fromkeys(by_pid)
        now = 0
        for pid, pieces in by_pid.items():
            try:
                now |= pages.mapped(pid, pieces)
            except OSError:
                continue
        piece = max((piece for pieces in by_pid.values() for piece in pieces), key=lambda each: each.end - each.start)
        skew = (piece.start - piece.offset) // PAGE_BYTES % pages.AROUND_PAGES
        if not self._baseline:
            new = now & ~file.mapped
            file.mapped_pages += count_ones(new)
            file.places += pages.blocks(new, skew)
        file.mapped = now
        if file.cached is not None:
            there = pages.cached(file.path)
            if there is not None:
                new = there & ~file.cached
                file.cached_pages += count_ones(new)
                file.fresh_pages += count_ones(new & ~(file.cached << 1 & file.cached >> 1))
            file.cached = there


def _seen(file: _Watched, traced: FileFaults | None) -> FileSeen:
    pieces = [piece for pieces in file.pieces.values() for piece in pieces]
    try:
        status = file.path.stat()
    except OSError:  # deleted, or the way to it went with a process in a container
        status = None
    return FileSeen(
        path=str(file.path),
        device=file.device.name,
        rotational=file.device.rotational,
        window_kb=file.window_kb,
        text=any(piece.text for piece in pieces),
        hint=next((piece.hint for piece in pieces if piece.hint), ""),
        size_bytes=status.st_size if status else max(piece.offset + piece.end - piece.start for piece in pieces),
        rss_bytes=sum(piece.rss_bytes for piece in pieces),
        pmd_mapped_bytes=sum(piece.pmd_bytes for piece in pieces),
        mapped_pages=file.mapped_pages,
        places=file.places,
        cached_pages=None if file.cached is None else file.cached_pages,
        fresh_pages=file.fresh_pages,
        fault_pages=traced.read_pages if traced else None,
        major_faults=traced.major_faults if traced else None,
        read_before=file.read_before,
        resident_bytes=None if file.cached is None else count_ones(file.cached) * PAGE_BYTES,
        processes=tuple(file.processes),
        open_in=tuple(pid for pid in file.pieces if status and _has_open(pid, status)),
        alive=any(map(runs, file.pieces)),
        engine=engine_of(file.path),
        come_and_gone=file.processes.keys() != file.pieces.keys(),
    )


def _outlasting(pid: int, path: str) -> Path:
    """A way to a file that does not end with the process, if we see it under the same name."""
    inside = seen_by(pid, path)
    try:
        return Path(path) if inside.samefile(path) else inside
    except OSError:
        return inside


def _has_open(pid: int, file: os.stat_result) -> bool:
    try:
        return bool(descriptors(pid, file))
    except (UsageError, NotPermitted):
        return False


def _machine_counters() -> tuple[int, int]:
    """Bytes read from block devices and major faults, of the whole machine since boot."""
    text = Path("/proc/vmstat").read_text()
    numbers = dict(line.split() for line in text.splitlines())
    return int(numbers["pgpgin"]) << 10, int(numbers["pgmajfault"])

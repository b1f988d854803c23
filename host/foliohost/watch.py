# SPDX-License-Identifier: GPL-2.0-only
"""Look at processes again and again, and add up what came into the cache and what was mapped of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from foliohost import pages, residency
from foliohost.bits import count_ones
from foliohost.details import Details, details
from foliohost.devices import HostDevice, device_under, module_was_tried, window_switches
from foliohost.faults import FaultTrace, FileFaults, Traced, faults_of, reading_seconds
from foliohost.mapped import MappedFile, MappedFiles
from foliohost.observation import FileSeen, Observation
from foliohost.pages import PageBits
from foliohost.processes import PAGE_BYTES, Counters, Mapping, Tally, open_files, runs, seen_by

_FIRST_PERIOD = 0.02
_LONGEST_PERIOD = 0.2
_SHARE = 10
"""A look is followed by so many times its own length without one."""
_DETAILS_PERIOD, _DETAILS_SHARE = 0.2, 100
"""The same of looks at details, in seconds at least, and as a share."""
_LOOK_SECONDS = 0.5
"""A look that has taken so long leaves the rest of the files to the next one."""


@dataclass
class _Watched:
    path: Path
    status: os.stat_result
    """When it was met: another file may have its path later."""
    device: HostDevice
    window_kb: int
    cached: int | None
    read_before: int
    begun: bool
    """False until its first look, which is the baseline."""
    mapped: PageBits = field(default_factory=PageBits)
    rss_pages: int = 0
    """At the last look; what two processes map counts twice."""
    one_in: int = 1
    looked: float = 0.0
    """When it was last looked at."""
    mapped_pages: int = 0
    places: int = 0
    followers: float = 0.0
    fullest: PageBits = field(default_factory=PageBits)
    skew: int = 0
    cached_pages: int = 0
    fresh_pages: int = 0
    evicted_pages: int = 0
    pieces: dict[int, list[Mapping]] = field(default_factory=dict)
    """At the last look."""
    processes: dict[int, None] = field(default_factory=dict)
    """That were seen to map it, in order."""


class Watch:
    """Processes under observation, from the end of a first look on.

    ``pids`` tells which, at each look; ``only`` is the file that matters, if one does. With ``fresh``, the processes
    have mapped nothing yet, and all counts. ``trace`` follows their faults, or says why that cannot be.
    """

    def __init__(
        self,
        pids: Callable[[], Iterable[int]],
        only: os.stat_result | None = None,
        fresh: bool = False,
        trace: FaultTrace | str = "Nobody asked for it.",
    ):
        if isinstance(trace, FaultTrace):
            trace.begin()
        self._pids = pids
        self._trace = trace
        self._only = only
        self._files: dict[MappedFile, _Watched | None] = {}
        self.mapped: set[MappedFile] = set()
        """Also files that could not be looked at."""
        self._old: set[MappedFile] | None = set() if fresh else None
        """Those that were mapped at the first look, whether it had time for them or not."""
        self._looks = MappedFiles()
        self._details: dict[int, dict[int, Details]] = {}
        """By process and address, as it was told last."""
        self._next_details = 0.0
        self._latest = 0.0
        """Seconds that the latest look has taken, but for the first, which meets more files."""
        self._tally = Tally()
        self._began = time.monotonic()
        self._machine = _machine_counters()
        self._counted = self._start = Counters()
        self.look()
        if not fresh:
            self._counted = self._start = self._tally.of(pids())
            self._began, self._machine = time.monotonic(), _machine_counters()
            for file in filter(None, self._files.values()):
                file.read_before = 0

    def run(self, seconds: float | None, ended: Callable[[], bool] = lambda: False) -> None:
        """Look until the time is over, in which the last look ends, or ``ended`` says so."""
        period = _FIRST_PERIOD
        while not ended() and self._left(seconds) > 0:
            self._wait(period, seconds, ended)
            began = time.monotonic()
            self.look()
            self._latest = time.monotonic() - began
            period = max(min(2 * period, _LONGEST_PERIOD), _SHARE * self._latest)
        if not ended():
            self._latest = 0.0
            self._wait(float("inf"), seconds, ended)  # the last look was faster than the one before

    def _left(self, seconds: float | None) -> float:
        """Seconds until the last look has to begin, for all to be over in time."""
        if seconds is None:
            return float("inf")
        return self._began + seconds - self._latest - reading_seconds(self._trace) - time.monotonic()

    def _wait(self, period: float, seconds: float | None, ended: Callable[[], bool]) -> None:
        end = time.monotonic() + period
        while (left := min(end - time.monotonic(), self._left(seconds))) > 0 and not ended():
            time.sleep(min(left, _LONGEST_PERIOD))

    def look(self) -> None:
        """Add up what is new since the last look; of many files, first of those that were not looked at for long."""
        began = time.monotonic()
        pids = list(self._pids())
        counted = self._tally.of(pids)
        pieces = self._looks.look(pids)
        if self._old is None:
            self._old = set(pieces)
        if not pieces:  # a process that has ended has counters still, and maps nothing
            return
        self._counted = counted
        self.mapped |= pieces.keys()
        self._look_at_details(pids, began)
        for key in sorted(pieces, key=lambda key: self._turn(key, pieces[key])):
            if key not in self._files:
                with suppress(OSError):  # its process has ended meanwhile: another may lead to it
                    self._files[key] = self._meet(pieces[key], key in self._old)
            if file := self._files.get(key):
                self._update(file, pieces[key])
            if time.monotonic() > began + _LOOK_SECONDS:
                break

    def _look_at_details(self, pids: Iterable[int], now: float) -> None:
        if now < self._next_details:
            return
        for pid in pids:
            found = details(pid)
            if found is not None:
                self._details[pid] = found
        spent = time.monotonic() - now
        self._next_details = now + max(_DETAILS_PERIOD, _DETAILS_SHARE * spent)

    def _turn(self, key: MappedFile, by_pid: dict[int, list[Mapping]]) -> tuple[float, int]:
        """Files are looked at in the order of this: when that was done last, and then the larger ones first."""
        file = self._files.get(key)
        size = max(piece.end - piece.start for pieces in by_pid.values() for piece in pieces)
        return file.looked if file else 0.0, -size

    def finish(self, counted: Counters | None = None, traced: Traced | None = None) -> Observation:
        """All that was seen; ``counted`` is what the processes had done when they ended, if that is known.

        ``traced`` is what the trace tells, if it was asked already.
        """
        end = self._counted
        if counted:
            called, calls = max(counted.called_bytes, end.called_bytes), max(counted.calls, end.calls)
            end = replace(counted, called_bytes=called, calls=calls)
        traced = traced or faults_of(self._trace, self.mapped)
        self._look_at_details(list(self._pids()), time.monotonic())
        mapping_it = {pid for file in self._files.values() if file for pid in file.pieces}
        inodes = {file.status.st_ino for file in self._files.values() if file}
        open_in = {pid: open_files(pid, inodes) for pid in mapping_it}
        read, faults = _machine_counters()
        return Observation(
            seconds=time.monotonic() - self._began,
            counted=end.since(self._start),
            before=self._start,
            unseen=end.since(self._counted),
            files=tuple(self._seen(file, traced.files.get(key), open_in) for key, file in self._files.items() if file),
            machine_read_bytes=read - self._machine[0],
            machine_major_faults=faults - self._machine[1],
            switches=window_switches(),
            module_tried=module_was_tried(os.uname().version),
            untraced=traced.untraced,
            trace_doubt=traced.doubt,
        )

    def _meet(self, by_pid: dict[int, list[Mapping]], old: bool) -> _Watched | None:
        """A file that is seen for the first time; None if no device is read for it, OSError if it is gone.

        It is ``old`` if it was mapped before we looked.
        """
        pid, (mapping, *_) = next(iter(by_pid.items()))
        path = seen_by(pid, mapping)
        found = path.stat()
        if found.st_ino != mapping.inode or (self._only and not os.path.samestat(found, self._only)):
            return None
        device = device_under(path, found)
        if not device:
            return None
        window_kb, there = device.read_ahead_kb, residency.cached(path, found)
        read_before = self._counted.since(self._start).read_bytes
        return _Watched(path, found, device, window_kb, there, read_before, not old)

    def _update(self, file: _Watched, by_pid: dict[int, list[Mapping]]) -> None:
        file.pieces = by_pid
        file.looked = time.monotonic()
        file.processes |= dict.fromkeys(by_pid)
        now = PageBits()
        file.rss_pages = 0
        for pid, pieces in by_pid.items():
            try:
                file.one_in = max(file.one_in, pages.one_in(pid, pieces))
                found = pages.mapped(pid, pieces, file.one_in)
            except OSError:
                continue
            file.rss_pages += len(found) * file.one_in
            now.update(found)
        piece = max((piece for pieces in by_pid.values() for piece in pieces), key=lambda each: each.end - each.start)
        skew = file.skew = (piece.start - piece.offset) // PAGE_BYTES % pages.AROUND_PAGES
        if file.begun:
            new = now.since(file.mapped)
            file.mapped_pages += len(new) * file.one_in
            file.places += new.arounds(skew) * file.one_in
            file.followers += new.followers(skew) * file.one_in
        elif isinstance(self._trace, FaultTrace):
            self._trace.begin_with(piece.file)
        file.mapped = now
        if len(now) > len(file.fullest):
            file.fullest = now
        if file.cached is not None:
            there = residency.cached(file.path, file.status)
            if there is not None and file.begun:
                arrived = there & ~file.cached
                file.cached_pages += count_ones(arrived)
                file.evicted_pages += count_ones(file.cached & ~there)
                file.fresh_pages += count_ones(arrived & ~(file.cached << 1 & file.cached >> 1))
            file.cached = there
        file.begun = True

    def _seen(self, file: _Watched, traced: FileFaults | None, open_in: dict[int, set[tuple[int, int]]]) -> FileSeen:
        pieces = [piece for pieces in file.pieces.values() for piece in pieces]
        told = [
            self._details[pid][piece.start]
            for pid, pieces in file.pieces.items()
            for piece in pieces
            if piece.start in self._details.get(pid, {})
        ]
        now = None
        with suppress(OSError):  # deleted, or the way to it went with a process in a container
            now = file.path.stat()
        there = now is not None and os.path.samestat(now, file.status)
        # Some of it may be cut off by now.
        size = max(file.status.st_size, now.st_size if now and there else 0)
        return FileSeen(
            path=str(file.path),
            device=file.device.name,
            rotational=file.device.rotational,
            window_kb=file.window_kb,
            text=any(piece.text for piece in pieces),
            hint=next((each.hint for each in told if each.hint), ""),
            hint_known=any(pid in self._details for pid in file.pieces),
            size_bytes=size,
            rss_bytes=file.rss_pages * PAGE_BYTES,
            pmd_mapped_bytes=sum(each.pmd_bytes for each in told),
            mapped_pages=file.mapped_pages,
            places=file.places,
            followers=round(file.followers),
            crowds=file.fullest.crowds(file.skew),
            cached_pages=None if file.cached is None else file.cached_pages,
            fresh_pages=file.fresh_pages,
            evicted_pages=file.evicted_pages,
            fault_pages=traced.read_pages if traced else None,
            major_faults=traced.major_faults if traced else None,
            read_before=file.read_before,
            resident_bytes=None if file.cached is None else count_ones(file.cached) * PAGE_BYTES,
            processes=tuple(file.processes),
            open_in=tuple(
                pid for pid in file.pieces if there and (file.status.st_dev, file.status.st_ino) in open_in[pid]
            ),
            alive=any(map(runs, file.pieces)),
            one_in=file.one_in,
            runs=traced.runs if traced else None,
            come_and_gone=file.processes.keys() != file.pieces.keys(),
        )


def _machine_counters() -> tuple[int, int]:
    """Bytes read from block devices and major faults, of the whole machine since boot."""
    text = Path("/proc/vmstat").read_text()
    numbers = dict(line.split() for line in text.splitlines())
    return int(numbers["pgpgin"]) << 10, int(numbers["pgmajfault"])

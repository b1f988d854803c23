# SPDX-License-Identifier: GPL-2.0-only
"""What this machine reads of mapped files: the worst files of the processes that a survey has found.

Processes of one control group are watched together. Groups are watched apart from each other, so that each has its
own counters, and a group whose looks are long takes none away from others.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from foliohost.errors import NotPermitted, UsageError
from foliohost.faults import FaultTrace, Traced, faults_of, reading_seconds
from foliohost.mapped import MappedFile
from foliohost.observation import FileSeen, Observation
from foliohost.processes import Counters, counters
from foliohost.shares import FileShare, share_out
from foliohost.survey import Survey
from foliohost.verdict import DiagnosisKind, judge
from foliohost.watch import Watch

_NOT_TRACED = Traced({})
_ROOT = re.compile(r"^/proc/\d+/root(?=/)")
_PERIOD = 0.2
_SHARE = 10
"""A round of looks is followed by so many times its own length without one."""


@dataclass(frozen=True)
class FileLoad:
    """What the processes of one control group read and used of one file."""

    share: FileShare
    path: str
    """As its processes see it."""
    cgroup: str
    seconds: float
    """In which that was."""
    waits: int | None
    """Major faults for the file; None without tracepoints."""
    process_waits: int
    """Major faults of the processes that map it and still run, for any memory."""
    kind: DiagnosisKind

    @property
    def wasted_bytes(self) -> int:
        """Read and not used, at least."""
        return max(0, (self.share.read_bytes or 0) - self.share.used_most)


@dataclass(frozen=True)
class HostLoad:
    """What was read and used on this machine in a time."""

    seconds: float
    busy_seconds: float
    """Of a processor, that looking took, survey included."""
    survey: Survey
    files: tuple[FileLoad, ...]
    """Those that something was read of, or perhaps was; the one that was wasted most of first."""
    read_bytes: int
    """By everybody, of all block devices."""
    major_faults: int
    """Of everybody."""
    adaptive: bool
    """Whether our kernel or module decides what misses read."""
    traced: Traced


def watch_host(found: Survey, seconds: float, trace: FaultTrace | str) -> HostLoad:
    """Watch the processes that a survey found for so many seconds."""
    end = time.monotonic() + seconds
    members: dict[str, list[int]] = {}
    for pid, group in found.groups.items():
        members.setdefault(group, []).append(pid)
    machine = Watch(list)
    watches: dict[str, Watch] = {}
    before: dict[int, Counters] = {}
    for group, pids in members.items():
        watches[group] = Watch(partial(list, pids), trace=trace)
        before.update(_counted(pids))  # its first look may have been long
    first = time.monotonic() - end + seconds
    _look_until(end - first, list(watches.values()), first, trace)  # to finish reads as much again, at most
    done = {pid: now.since(before[pid]) for pid, now in _counted(before).items()}
    traced = faults_of(trace, set[MappedFile]().union(*(watch.mapped for watch in watches.values())))
    seen = {group: watch.finish(traced=traced) for group, watch in watches.items()}
    return host_load(machine.finish(), seen, found, done, traced)


def _look_until(end: float, watches: Collection[Watch], longest: float, trace: FaultTrace | str) -> None:
    """Look in rounds, the last of which ends at that time; the ``longest`` one so far took so many seconds."""
    last = False
    while not last:
        left = end - longest - reading_seconds(trace) - time.monotonic()
        pause = max(_PERIOD, _SHARE * longest)
        last = pause >= left
        time.sleep(max(0.0, min(pause, left)))
        began = time.monotonic()
        for watch in watches:
            watch.look()
        longest = max(longest, time.monotonic() - began)


def _counted(pids: Iterable[int]) -> dict[int, Counters]:
    """What each process that is there has done so far."""
    found = {}
    for pid in pids:
        with suppress(UsageError, NotPermitted, OSError):
            found[pid] = counters(pid)
    return found


def _inside(file: FileSeen) -> str:
    """The path of a file as its processes see it."""
    return _ROOT.sub("", file.path)


def host_load(
    machine: Observation,
    groups: Mapping[str, Observation],
    found: Survey,
    done: Mapping[int, Counters],
    traced: Traced = _NOT_TRACED,
) -> HostLoad:
    """What observations of control groups come to; ``done`` is what each process did that still runs."""
    loads = [_file_load(seen, group, done, share) for group, seen in groups.items() for share in share_out(seen)]
    files = [
        file for file in loads if file.share.read_bytes or (file.share.read_bytes is None and not file.share.seen.text)
    ]
    files.sort(key=lambda file: (file.wasted_bytes, file.share.read_bytes or 0), reverse=True)
    return HostLoad(
        seconds=machine.seconds,
        busy_seconds=time.process_time(),
        survey=found,
        files=tuple(files),
        read_bytes=machine.machine_read_bytes,
        major_faults=machine.machine_major_faults,
        adaptive=machine.adaptive,
        traced=traced,
    )


def _file_load(seen: Observation, group: str, done: Mapping[int, Counters], share: FileShare) -> FileLoad:
    file = share.seen
    whose = [done.get(pid) for pid in file.processes]
    together = sum(filter(None, whose), Counters())
    if share.read_bytes is not None and all(whose):
        # Holes of a file come into the cache as well, and nothing is read for them.
        share = replace(share, read_bytes=min(share.read_bytes, together.read_bytes))
    majors = together.major_faults if file.major_faults is None else file.major_faults
    # The rules for a process, for what it does with this file alone.
    alone = replace(seen, files=(file,), unseen=Counters(), counted=Counters(share.read_bytes or 0, 0, majors))
    return FileLoad(
        share=share,
        path=_inside(file),
        cgroup=group,
        seconds=seen.seconds,
        waits=file.major_faults,
        process_waits=together.major_faults,
        kind=judge(alone).kind,
    )

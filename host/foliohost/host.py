# SPDX-License-Identifier: GPL-2.0-only
"""What this machine reads of mapped files: the worst files of the processes that a survey has found."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from foliohost.errors import NotPermitted, UsageError
from foliohost.faults import FaultTrace
from foliohost.observation import Observation
from foliohost.processes import Counters, counters
from foliohost.shares import FileShare, share_out
from foliohost.survey import Survey
from foliohost.verdict import DiagnosisKind, judge
from foliohost.watch import Watch

_ROOT = re.compile(r"/proc/\d+/root(?=/)")


@dataclass(frozen=True)
class FileLoad:
    """What was read and used of one file."""

    share: FileShare
    path: str
    """As its processes see it."""
    cgroup: str
    """The control group of that process among them which read most."""
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
    """Those that anything was read or used of, the one that was wasted most of first."""
    read_bytes: int
    """By everybody, of all block devices."""
    major_faults: int
    """Of everybody."""
    untraced: str
    """Why tracepoints tell nothing; empty if they do."""


def watch_host(found: Survey, seconds: float, trace: FaultTrace | str) -> HostLoad:
    """Watch the processes that a survey found for so many seconds."""
    pids = list(found.groups)
    before = _counted(pids)
    watch = Watch(lambda: pids, trace=trace)
    watch.run(seconds)
    seen = watch.finish()
    done = {pid: now.since(before[pid]) for pid, now in _counted(before).items()}
    return host_load(seen, found, done, time.process_time())


def _counted(pids: Iterable[int]) -> dict[int, Counters]:
    """What each process that is there has done so far."""
    found = {}
    for pid in pids:
        with suppress(UsageError, NotPermitted, OSError):
            found[pid] = counters(pid)
    return found


def host_load(seen: Observation, found: Survey, done: Mapping[int, Counters], busy_seconds: float) -> HostLoad:
    """What an observation of the processes found comes to; ``done`` is what each did that still runs."""
    files = [_file_load(seen, found, done, share) for share in share_out(seen)]
    files.sort(key=lambda file: (file.wasted_bytes, file.share.read_bytes or 0), reverse=True)
    return HostLoad(
        seconds=seen.seconds,
        busy_seconds=busy_seconds,
        survey=found,
        files=tuple(files),
        read_bytes=seen.machine_read_bytes,
        major_faults=seen.machine_major_faults,
        untraced=seen.untraced,
    )


def _file_load(seen: Observation, found: Survey, done: Mapping[int, Counters], share: FileShare) -> FileLoad:
    file = share.seen
    whose = [done.get(pid) for pid in file.processes]
    together = sum(filter(None, whose), Counters())
    if share.read_bytes is not None and all(whose):
        # Holes of a file come into the cache as well, and nothing is read for them.
        share = replace(share, read_bytes=min(share.read_bytes, together.read_bytes))
    majors = together.major_faults if file.major_faults is None else file.major_faults
    # The rules for a process, for what it does with this file alone.
    alone = replace(seen, files=(file,), unseen=Counters(), counted=Counters(share.read_bytes or 0, 0, majors))
    first = next((pid for pid in found.groups if pid in file.processes), 0)
    return FileLoad(
        share=share,
        path=_ROOT.sub("", file.path, count=1) if file.path.startswith("/proc/") else file.path,
        cgroup=found.groups.get(first, ""),
        waits=file.major_faults,
        process_waits=together.major_faults,
        kind=judge(alone).kind,
    )

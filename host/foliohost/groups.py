# SPDX-License-Identifier: GPL-2.0-only
"""Which control group a process is in, whose that is, and what was reclaimed of it on request."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from foliohost.files import in_container
from foliohost.processes import PAGE_BYTES

_ROOTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
_READ_ONLY = 1
"""ST_RDONLY."""
_CONTAINER = re.compile(r"(?:^|[-/:])([0-9a-f]{12})[0-9a-f]{52}(?:\.scope)?$")
_POD = re.compile(r"\bpod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
_UNIT = re.compile(r"[^/]+\.(?:service|scope)$")


@dataclass(frozen=True)
class ControlGroup:
    """A control group that processes are in."""

    path: str
    """Below the root of all groups that we see."""
    name: str
    """The pod, container or unit, in words; empty if the path tells none."""
    processes: tuple[int, ...]
    proactive_bytes: int | None
    """Taken from it in the time of the look because somebody asked for it (memory.reclaim). None where the kernel does
    not count that: 6.18 does, 6.12 does not."""


class Groups:
    """The groups of processes, from now on."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._before: dict[str, int | None] = {}
        self._processes: dict[str, dict[int, None]] = {}
        self.look(pids)

    def look(self, pids: Iterable[int]) -> None:
        """Take in the groups of processes that may be new."""
        for pid in pids:
            if path := group_of(pid):
                if path not in self._before:
                    self._before[path] = _proactive_pages(path)
                self._processes.setdefault(path, {})[pid] = None

    def finish(self) -> tuple[ControlGroup, ...]:
        """All groups that were met."""
        found = []
        for path, before in self._before.items():
            after = _proactive_pages(path)
            taken = None if before is None or after is None else max(0, after - before) * PAGE_BYTES
            found.append(ControlGroup(path, name_of(path), tuple(self._processes[path]), taken))
        return tuple(found)


def paths_of(pid: int) -> dict[str, str]:
    """Paths of a process's groups by their controller, that of version 2 by none; empty if the process is gone."""
    try:
        return parse_paths(Path(f"/proc/{pid}/cgroup").read_bytes().decode(errors="surrogateescape"))
    except OSError:
        return {}


def parse_paths(text: str) -> dict[str, str]:
    """What a text like that of ``/proc/PID/cgroup`` tells. Names of groups have no line feed, but any other sign."""
    rows = (line.split(":", 2) for line in text.split("\n"))
    return {controller: row[2] for row in rows if len(row) == 3 for controller in row[1].split(",")}


def group_of(pid: int) -> str:
    """The group that counts a process's memory; empty if the process is gone."""
    paths = paths_of(pid)
    return paths.get("memory", paths.get("", ""))


def top_groups() -> str:
    """The files by which a process moves into the topmost group, of each hierarchy if there are several, with blanks
    between them.
    """
    root, *_ = _ROOTS
    whole = root / "cgroup.procs"
    return " ".join(map(str, [whole] if whole.exists() else sorted(root.glob("*/cgroup.procs"))))


def name_of(path: str) -> str:
    """Whose group that is, in words: of a pod, a container or a unit."""
    words = []
    if pod := _POD.search(path):
        words.append(f"pod {pod[1].replace('_', '-')}")
    if container := _CONTAINER.search(path):
        words.append(f"container {container[1]}")
    elif not words and (unit := _UNIT.search(path)):
        words.append(f"unit {unit[0]}")
    return ", ".join(words)


def _proactive_pages(path: str) -> int | None:
    """Pages that were reclaimed of a group on request since it was made."""
    for root in _ROOTS:
        with suppress(OSError):
            text = (root / path.lstrip("/") / "memory.stat").read_text()
            if found := re.search(r"^pgsteal_proactive (\d+)$", text, re.MULTILINE):
                return int(found[1])
    return None


def blind_spots() -> list[str]:
    """What cannot be seen or done from inside a container, a sentence each; none outside of one."""
    found = []
    if in_container():
        found.append(
            "This is a container: processes outside of it are not seen, also where they map the same files or have"
            " them evicted. On the host, diagnose sees all."
        )
    with suppress(OSError):
        if os.statvfs("/sys").f_flag & _READ_ONLY:
            found.append("/sys cannot be written here: cures of windows have to be applied on the host.")
    return found

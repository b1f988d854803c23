# SPDX-License-Identifier: GPL-2.0-only
"""What tasks have mapped where, and the names of files that the kernel knows by number."""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from time import monotonic_ns
from typing import Generic, TypeVar

from foliohost.devices import find_device, mount_of, mounted, number_of
from foliohost.groups import paths_of
from foliohost.processes import parse_maps
from foliohost.touches import File

_MINOR_BITS = 20
_Piece = tuple[int, int, int, File]
"""Of a process's memory: first address, the one after it, offset in the file in bytes, file."""
_PIECE_BYTES, _PLACE_BYTES = 400, 8
"""What a piece takes in our memory, and each mention of one that is known."""
_Value = TypeVar("_Value")


class _History(Generic[_Value]):
    """What something was at the times when it was looked at, which are given in order."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._values: list[_Value] = []

    def stay(self, time: int) -> None:
        """It is still what it was found to be last."""
        self._lasts[-1] = time

    def add(self, time: int, value: _Value) -> None:
        if self._values and self._values[-1] == value:
            self.stay(time)
        else:
            self._firsts.append(time)
            self._lasts.append(time)
            self._values.append(value)

    def around(self, time: int) -> Iterator[_Value]:
        """What it was at the first look after a time, and if it had changed since the look before, what it was then."""
        at = bisect_left(self._lasts, time)
        if at < len(self._values):
            yield self._values[at]
        if at and (at == len(self._values) or time < self._firsts[at]):
            yield self._values[at - 1]


class Maps:
    """The mappings of files that tasks had when they were looked at; without ``keep`` only the names of the files."""

    def __init__(self, keep: bool = True) -> None:
        self.keep = keep
        self.size = 0
        """Bytes that mappings take which were kept, about: each change keeps them all."""
        self._pieces: dict[_Piece, _Piece] = {}
        """Each piece once: most of them stay as they are."""
        self.names: dict[File, str] = {}
        self._groups: dict[int, int] = {}
        """The thread group of each task, which has mappings of its own, at the latest look."""
        self._group_of: dict[int, _History[int]] = {}
        self._mapped: dict[int, _History[tuple[_Piece, ...]]] = {}
        """By group, in the order of addresses."""
        self._texts: dict[int, str] = {}
        """The latest of each group: most looks find nothing new."""

    def look(self, tasks: Iterable[int]) -> None:
        """Look at what these tasks have mapped now; those that have ended have nothing."""
        time = monotonic_ns()
        # A number that is missing once may be another task's later.
        self._groups = {task: group for task in tasks if (group := self._groups.get(task) or _group(task))}
        for task, group in self._groups.items():
            if self.keep:
                self._group_of.setdefault(task, _History()).add(time, group)
        groups = set(self._groups.values())
        self._texts = {group: text for group, text in self._texts.items() if group in groups}
        for group in groups:
            # All tasks of a group have its mappings; its leader may have ended, and then shows none.
            members = (task for task, mine in self._groups.items() if mine == group)
            if text := next(filter(None, map(_text, members)), ""):
                self.add(group, text, time)

    def add(self, group: int, text: str, time: int) -> None:
        """Take the text of a thread group's file ``maps``, as it is at a time in nanoseconds (CLOCK_MONOTONIC)."""
        if self._texts.get(group) == text:
            if self.keep:
                self._mapped[group].stay(time)
            return
        self._texts[group] = text
        pieces = []
        for mapping in parse_maps(text, deleted=True):
            major, minor = map(int, mapping.device.split(":"))
            file = (major << _MINOR_BITS | minor, mapping.inode)
            self.names[file] = mapping.path
            pieces.append((mapping.start, mapping.end, mapping.offset, file))
        if self.keep:
            before = len(self._pieces)
            pieces = [self._pieces.setdefault(piece, piece) for piece in pieces]
            self.size += (len(self._pieces) - before) * _PIECE_BYTES + len(pieces) * _PLACE_BYTES
            self._mapped.setdefault(group, _History()).add(time, tuple(pieces))

    def locate(self, task: int, address: int, time: int) -> tuple[File, int] | None:
        """The file at a task's address, and the byte of it.

        What was there at the first look after that time counts, else what was there before: a fault comes soon after
        the mapping that it is for, and another program or mapping may have been at its place.
        """
        groups = self._group_of.get(task)
        group = next(groups.around(time), task) if groups else task
        for pieces in self._mapped[group].around(time) if group in self._mapped else ():
            at = bisect_right(pieces, (address + 1,))
            if at and address < pieces[at - 1][1]:
                start, _, offset, file = pieces[at - 1]
                return file, offset + address - start
        return None


def _text(task: int) -> str:
    """A task's file ``maps``; empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{task}/maps").read_bytes().decode(errors="surrogateescape")
    return ""


def _group(task: int) -> int | None:
    """The thread group of a task; None if it has ended."""
    try:
        status = Path(f"/proc/{task}/status").read_bytes()
    except OSError:
        return None
    found = re.search(rb"^Tgid:\s*(\d+)$", status, re.MULTILINE)
    return int(found[1]) if found else None


def named(patterns: Sequence[str]) -> dict[File, str]:
    """The files that shell patterns name, which may have ``**``."""
    found: dict[File, str] = {}
    devices: dict[int, str] = {}
    for pattern in patterns:
        start = Path("/" if pattern.startswith("/") else ".")
        for path in _matching(start, [part for part in pattern.split("/") if part]):
            with suppress(OSError):
                if path.is_file():
                    found[file_of(path, devices)] = str(path.resolve())
    return found


def _matching(start: Path, pattern: Sequence[str]) -> Iterator[Path]:
    """What a pattern, cut at its slashes, names below a directory; names that begin with a dot are names as well."""
    waiting = [(start, pattern)]
    while waiting:
        place, parts = waiting.pop()
        if not parts:
            yield place
            continue
        first, rest = parts[0], parts[1:]
        if first == "**":
            waiting.append((place, rest or ["*"]))
            waiting += [(below, parts) for below in _entries(place) if _is_directory(below)]
        elif any(character in first for character in "*?["):
            waiting += [(below, rest) for below in _entries(place) if fnmatchcase(below.name, first)]
        else:
            waiting.append((place / first, rest))


def _is_directory(path: Path) -> bool:
    """Whether that is one, and no link; not if we may not know."""
    with suppress(OSError):
        return stat.S_ISDIR(path.lstat().st_mode)
    return False


def _entries(directory: Path) -> list[Path]:
    """What lies in a directory; nothing if it cannot be read."""
    with suppress(OSError):
        return list(directory.iterdir())
    return []


def file_of(path: Path, devices: dict[int, str] | None = None) -> File:
    """What the kernel's events call a file. ``os.stat`` has another device where btrfs has subvolumes.

    ``devices`` keeps MAJOR:MINOR of each mount for the next file: to read what is mounted may take milliseconds.
    """
    known = {} if devices is None else devices
    handle = os.open(path, os.O_PATH)
    try:
        mount, status = mount_of(handle), os.fstat(handle)
        if mount not in known:
            known.update({each.mount: each.number for each in mounted()})
        # Whoever has other mounts than we do may have opened the way to it.
        number = known.setdefault(mount, "") or number_of(status)
        major, minor = map(int, number.split(":"))
        return major << _MINOR_BITS | minor, status.st_ino
    finally:
        os.close(handle)


def read_ahead_kb(device: int) -> int | None:
    """The window that a device allows, by the kernel's number; None if it has none."""
    found = find_device(device >> _MINOR_BITS, device & (1 << _MINOR_BITS) - 1)
    return found.read_ahead_kb if found else None


def memory_bytes(process: int) -> int:
    """What can be had for files and all else: what is available, or less if a control group of the process says so."""
    words = Path("/proc/meminfo").read_text().split()
    limits = [int(words[words.index("MemAvailable:") + 1]) << 10]
    root = Path("/sys/fs/cgroup")
    place = root / paths_of(process).get("", "/").lstrip("/")
    while place != root:
        with suppress(OSError, ValueError):
            limits.append(int((place / "memory.max").read_text()))
        place = place.parent
    return min(limits)

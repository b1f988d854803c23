# SPDX-License-Identifier: GPL-2.0-only
"""What tasks have mapped where, and the names of files that the kernel knows by number."""

import glob
import os
import re
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from foliolab.live.devices import find_device
from foliolab.live.processes import parse_smaps
from foliolab.live.touches import File

_MINOR_BITS = 20


class Maps:
    """All mappings of files that were seen so far."""

    def __init__(self) -> None:
        self.names: dict[File, str] = {}
        self._groups: dict[int, int] = {}
        """The thread group of each task, which has mappings of its own."""
        self._starts: dict[int, list[int]] = {}
        self._mapped: dict[int, dict[int, tuple[int, int, File]]] = {}

    def look(self, tasks: Iterable[int]) -> None:
        """Look at what these tasks have mapped now; those that have ended have nothing."""
        for group in {self._group(task) for task in tasks}:
            with suppress(OSError):
                self.add(group, Path(f"/proc/{group}/maps").read_text(errors="surrogateescape"))

    def _group(self, task: int) -> int:
        if task not in self._groups:
            with suppress(OSError):
                status = Path(f"/proc/{task}/status").read_text(errors="replace")
                self._groups.update(
                    (task, int(group)) for group in re.findall(r"^Tgid:\s*(\d+)$", status, re.MULTILINE)
                )
        return self._groups.get(task, task)

    def add(self, group: int, text: str) -> None:
        """Take the text of a thread group's file ``maps``."""
        starts, mapped = self._starts.setdefault(group, []), self._mapped.setdefault(group, {})
        for mapping in parse_smaps(text, deleted=True):
            major, minor = map(int, mapping.device.split(":"))
            file = (major << _MINOR_BITS | minor, mapping.inode)
            self.names[file] = mapping.path
            if mapping.start not in mapped:
                insort(starts, mapping.start)
            mapped[mapping.start] = (mapping.end, mapping.offset, file)

    def locate(self, task: int, address: int) -> tuple[File, int] | None:
        """The file at a task's address, and the byte of it."""
        group = self._groups.get(task, task)
        starts = self._starts.get(group, [])
        at = bisect_right(starts, address)
        if not at:
            return None
        end, offset, file = self._mapped[group][starts[at - 1]]
        return (file, offset + address - starts[at - 1]) if address < end else None


def named(patterns: Sequence[str]) -> dict[File, str]:
    """The files that shell patterns name, which may have ``**``."""
    found: dict[File, str] = {}
    for pattern in patterns:
        # Path.glob takes no absolute pattern.
        for name in glob.iglob(pattern, recursive=True, include_hidden=True):  # noqa: PTH207
            with suppress(OSError):
                if Path(name).is_file():
                    found[file_of(Path(name))] = str(Path(name).resolve())
    return found


def file_of(path: Path) -> File:
    """What the kernel's events call a file. ``os.stat`` has another device where btrfs has subvolumes."""
    handle = os.open(path, os.O_PATH)
    try:
        information = Path(f"/proc/self/fdinfo/{handle}").read_text()
        mount = re.search(r"^mnt_id:\s*(\d+)$", information, re.MULTILINE)
        table = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
        device = mount and re.search(rf"^{mount[1]} \d+ (\d+):(\d+) ", table, re.MULTILINE)
        stat = os.fstat(handle)
        major, minor = map(int, device.groups()) if device else (os.major(stat.st_dev), os.minor(stat.st_dev))
        return major << _MINOR_BITS | minor, stat.st_ino
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
    with suppress(OSError):
        group = re.search(r"^0::/(.*)$", Path(f"/proc/{process}/cgroup").read_text(), re.MULTILINE)
        place = Path("/sys/fs/cgroup", group[1]) if group else None
        while place and place != Path("/sys/fs/cgroup"):
            with suppress(OSError, ValueError):
                limits.append(int((place / "memory.max").read_text()))
            place = place.parent
    return min(limits)

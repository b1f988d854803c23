# SPDX-License-Identifier: GPL-2.0-only
"""The device under a file, and the window that it gives to files that are opened."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from foliohost.errors import NoCure, UsageError
from foliohost.libc import is_btrfs


@dataclass(frozen=True)
class HostDevice:
    name: str
    """As the kernel calls it: vda, dm-0, btrfs-1."""
    attribute: Path
    """The file below /sys with its window."""
    rotational: bool | None
    """None if the kernel does not say so, as of network file systems."""

    @property
    def read_ahead_kb(self) -> int:
        """The window in KiB, for files that are opened from now on."""
        return int(self.attribute.read_text())

    @property
    def sequence(self) -> int | None:
        """A number that no other disk had since boot; None of what is no disk, and on kernels without it."""
        with suppress(OSError):
            return int((self.attribute.parent.parent / "diskseq").read_text())
        return None


class MountPoint(NamedTuple):
    """A line of a file ``mountinfo``."""

    mount: int
    """The kernel's number of the mount."""
    number: str
    """MAJOR:MINOR of the file system, decimal."""
    place: str
    """Where it is, with octal numbers for blanks and the like."""
    kind: str
    source: str
    options: str
    """Of the file system."""

    @property
    def path(self) -> bytes:
        """Where it is, below the root directory of the process whose table that is."""
        place = self.place.encode(errors="surrogateescape")
        return re.sub(rb"\\(\d{3})", lambda octal: bytes([int(octal[1], 8)]), place)


def device_of(path: Path) -> HostDevice:
    """The device that holds a file.

    NoCure if its file system has no window, as tmpfs has none; UsageError if there is no such file.
    """
    if not path.is_file():
        raise UsageError(f"There is no file {path}.")
    found = device_under(path, path.stat())
    if not found:
        raise NoCure(f"The file system that holds {path} has no read_ahead_kb.")
    return found


def device_under(path: Path, status: os.stat_result) -> HostDevice | None:
    """The same of a file or directory whose status is known; None if nothing reads ahead there."""
    return find_device(os.major(status.st_dev), os.minor(status.st_dev), is_btrfs(path))


def find_device(
    major: int,
    minor: int,
    btrfs: bool = False,
    sys: Path = Path("/sys"),
    mounts: Sequence[MountPoint] | None = None,
) -> HostDevice | None:
    """The device behind a file system's number; None if nothing reads ahead there.

    ``btrfs`` says that it is one, whose subvolumes have numbers that no table has. ``mounts`` are ours, where they
    are known already. ``sys`` is for tests.
    """
    if major:
        return _block_device((sys / f"dev/block/{major}:{minor}").resolve())
    # Network and FUSE file systems call theirs by the number.
    if device := _other_device(sys / f"class/bdi/0:{minor}"):
        return device
    table = mounted() if mounts is None else mounts
    for layer in _layers(f"0:{minor}", table):
        with suppress(OSError):
            number = layer.stat().st_dev
            # The path may lead back here: that of a layer is as whoever mounted the overlay sees it.
            if number != os.makedev(0, minor) and (
                device := find_device(os.major(number), os.minor(number), is_btrfs(layer), sys, table)
            ):
                return device
    pool = _btrfs(f"0:{minor}", btrfs, sys, table)
    return _other_device(pool) if pool else None


def _other_device(directory: Path) -> HostDevice | None:
    """What is no block device, by its directory below ``/sys``."""
    attribute = directory / "read_ahead_kb"
    return HostDevice(directory.resolve().name, attribute, None) if attribute.exists() else None


def mounted(table: Path = Path("/proc/self/mountinfo")) -> list[MountPoint]:
    """All that a process has mounted, as such a file tells.

    Only a line feed ends a line, and only a blank a word: names may have all other characters.
    """
    found = []
    for line in table.read_bytes().decode(errors="surrogateescape").split("\n"):
        fields, _, rest = line.partition(" - ")
        words, about = fields.split(" "), rest.split(" ", 2)
        if len(words) > 4 and len(about) == 3:
            found.append(MountPoint(int(words[0]), words[2], words[4], *about))
    return found


def number_of(status: os.stat_result) -> str:
    """That of the file system which holds a file, as ``MountPoint`` has it."""
    return f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"


def mount_of(handle: int) -> int:
    """The kernel's number of the mount by which we have a file open."""
    text = Path(f"/proc/self/fdinfo/{handle}").read_text()
    return int(dict(line.split(":", 1) for line in text.splitlines())["mnt_id"])


def _layers(number: str, mounts: Sequence[MountPoint]) -> list[Path]:
    """The directories that an overlay is made of, the one on top first; none if that number is of something else.

    A file of it is read from the device of its layer, which is mostly the same for all.
    """
    for mount in mounts:
        if mount.kind == "overlay" and mount.number == number:
            found = re.findall(r"(upperdir|lowerdir\+?)=([^,]*)", mount.options)
            places = [Path(place) for _, some in sorted(found, reverse=True) for place in some.split(":")]
            return [place for place in places if place.is_absolute()]
    return []


def _block_device(directory: Path) -> HostDevice | None:
    whole = directory.parent if (directory / "partition").exists() else directory
    attribute = whole / "queue/read_ahead_kb"
    if not attribute.exists():
        return None
    rotational = (whole / "queue/rotational").read_text().strip() == "1"
    return HostDevice(whole.name, attribute, rotational)


def _btrfs(number: str, btrfs: bool, sys: Path, mounts: Sequence[MountPoint]) -> Path | None:
    """The bdi of the pool that is mounted from the same device as the file system with this number.

    Each subvolume has a number of its own, which mountinfo knows only for what is mounted; of a file system that is
    ``btrfs``, a single pool is taken for the one that is meant.
    """
    pools = [pool for pool in sorted((sys / "fs/btrfs").glob("*/bdi")) if (pool / "read_ahead_kb").exists()]
    for mount in mounts:
        if mount.number == number:
            place = Path(mount.source).resolve().name
            pools = [pool for pool in pools if mount.kind == "btrfs" and (pool.parent / "devices" / place).exists()]
            return pools[0] if len(pools) == 1 else None
    return pools[0] if btrfs and len(pools) == 1 else None


def module_was_tried(version: str) -> bool:
    """Whether our module was tried on the kernel that says this of its version (``os.uname().version``)."""
    return bool(re.search(r"\bDebian (6\.1|6\.12|7\.2|7\.3)[.~-]", version))


def window_switches() -> dict[str, bool]:
    """Whether our kernel's and our module's window is on, by the file that switches it; only files that exist."""
    found = {}
    for switch in ("/sys/kernel/mm/mmap_readahead/adaptive", "/sys/module/mmap_readahead_window/parameters/adaptive"):
        with suppress(OSError):
            found[switch] = Path(switch).read_text().strip() in ("1", "Y")
    return found


def windows_adapt() -> bool:
    """Whether our kernel or our module decides here what a miss reads."""
    return any(window_switches().values())

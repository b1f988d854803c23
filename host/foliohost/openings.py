# SPDX-License-Identifier: GPL-2.0-only
"""Who opens files of a device in a short time, by fanotify: root alone may know."""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from foliohost.devices import MountPoint, find_device, mount_of, mounted, number_of
from foliohost.errors import FolioError, UsageError
from foliohost.libc import call, is_btrfs
from foliohost.processes import all_processes, mappings, same_file, start_time
from foliohost.taken import held
from foliohost.windows import OpenFile

_CLASS = 0x1 | 0x2
"""FAN_CLOEXEC, FAN_NONBLOCK; notifications, which nobody waits for. The queue is bounded: we may be stopped."""
_ADD_FILE_SYSTEM = 0x1 | 0x100
_FLUSH_FILE_SYSTEMS = 0x80 | 0x100
_OPEN = 0x20
_AT_FDCWD = -100
_EVENT = struct.Struct("=IBBHQii")
_AT_ONCE = 100
"""So many events, of which each takes a descriptor."""
_LATE_SECONDS = 0.001
"""The kernel tells of an opening so much later, at most: a few microseconds, if nothing comes between."""


@dataclass(frozen=True)
class Opened:
    """A file that another process opened while the device had a window for a moment."""

    path: str
    pid: int
    given_back: bool
    """Whether it has the device's own window again; else the process maps it and has closed it."""


class DiskMounts:
    """The mounts of the file systems on a device, those of containers among them, which have mounts of their own."""

    def __init__(self, attribute: Path) -> None:
        """Those of file systems that have their window from there."""
        self._attribute = attribute
        self._ours: list[MountPoint] = []
        self._known: dict[tuple[str, bool], bool] = {}
        self.places: dict[str, list[tuple[int, bytes]]] = {}
        """By the number of the file system: that of each mount, and a way of ours to it."""
        for process in _with_other_mounts():
            with suppress(OSError):
                mounts = mounted(process / "mountinfo")
                self._ours = self._ours or mounts  # we come first
                for mount in mounts:
                    if self.have(mount.number, mount.kind == "btrfs"):
                        way = bytes(process / "root") + mount.path
                        self.places.setdefault(mount.number, []).append((mount.mount, way))

    def have(self, number: str, btrfs: bool) -> bool:
        """Whether the file system with that number, MAJOR:MINOR, has its window from there."""
        if (number, btrfs) not in self._known:
            device, (major, minor) = None, map(int, number.split(":"))
            with suppress(OSError):
                device = find_device(major, minor, btrfs, mounts=self._ours)
            self._known[number, btrfs] = device is not None and device.attribute == self._attribute
        return self._known[number, btrfs]


class Openings:
    """The openings of files on a device from now on."""

    def __init__(self, mounts: DiskMounts):
        """OSError if the kernel does not tell us."""
        self._mounts = mounts
        how = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOATIME | getattr(os, "O_LARGEFILE", 0)
        self._queue = call("fanotify_init", ctypes.c_uint(_CLASS), ctypes.c_uint(how))
        self._all_marked = True
        try:
            for places in mounts.places.values():
                self._all_marked &= any(self._mark(*place) for place in places)
        except BaseException:
            self.close()
            raise

    def _mark(self, number: int, place: bytes) -> bool:
        """Ask about all of a file system, in whatever places, by a mount with that number; False if it is not there."""
        try:
            handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            if mount_of(handle) != number:  # another one covers it
                return False
            words = ctypes.c_uint(_ADD_FILE_SYSTEM), ctypes.c_uint64(_OPEN), _AT_FDCWD, b"/proc/self/fd/%d" % handle
            call("fanotify_mark", self._queue, *words)
            return True
        finally:
            os.close(handle)

    def close(self) -> None:
        os.close(self._queue)

    def forget(self) -> None:
        """Only those from now on count; if there are very many, some from before count as well."""
        for handle, _ in self._fetch():
            if handle >= 0:
                os.close(handle)

    def found(self) -> tuple[list[OpenFile], bool]:
        """The files that others have opened, each once, and no more from now on; and whether these are all.

        Those whose process has ended are left out.
        """
        time.sleep(_LATE_SECONDS)
        call("fanotify_mark", self._queue, ctypes.c_uint(_FLUSH_FILE_SYSTEMS), ctypes.c_uint64(0), _AT_FDCWD, None)
        found: dict[OpenFile, None] = {}
        all_told = self._all_marked
        while events := self._fetch():
            for handle, pid in events:
                if handle < 0:  # the queue was full
                    all_told = False
                elif file := _file(handle, pid, self._mounts):
                    found[file] = None
        return list(found), all_told

    def _fetch(self) -> list[tuple[int, int]]:
        """Some of what waits: a descriptor of the file that was opened, and the process; -1 for those that are lost."""
        with suppress(BlockingIOError):
            return list(_events(os.read(self._queue, _AT_ONCE * _EVENT.size)))
        return []


def _events(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at + _EVENT.size <= len(data):
        length, _, _, _, _, handle, pid = _EVENT.unpack_from(data, at)
        at += length
        yield handle, pid


def _file(handle: int, pid: int, mounts: DiskMounts) -> OpenFile | None:
    """The file of an event, whose descriptor is closed; None if it is ours, elsewhere, or its process has ended."""
    try:
        link = Path(f"/proc/self/fd/{handle}")
        status, path = os.fstat(handle), str(link.readlink())
        if pid in (0, os.getpid()) or not mounts.have(number_of(status), is_btrfs(link)):
            return None
        return OpenFile(path, pid, start_time(pid), status.st_dev, status.st_ino)
    except (FolioError, OSError):
        return None
    finally:
        os.close(handle)


def _with_other_mounts() -> list[Path]:
    """Of those processes that have the same mounts, one: ours, and of containers their lowest."""
    found: dict[str, Path] = {}
    for process in (Path("/proc/self"), *(Path(f"/proc/{pid}") for pid in sorted(all_processes()))):
        with suppress(OSError):
            found.setdefault(str((process / "ns/mnt").readlink()), process)
    return list(found.values())


def give_back(files: list[OpenFile]) -> list[Opened]:
    """Have those files that are open still take the window that their device has now."""
    found = []
    for file in files:
        try:
            with held(file) as handles:
                for handle in handles:
                    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_NORMAL)
            found.append(Opened(file.path, file.pid, True))
        except UsageError:  # the process has ended
            continue
        except (FolioError, OSError):
            if _maps(file):
                found.append(Opened(file.path, file.pid, False))
    return found


def _maps(file: OpenFile) -> bool:
    with suppress(FolioError):
        return any(same_file(file.pid, mapping, file.status) for mapping in mappings(file.pid))
    return False

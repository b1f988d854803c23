# SPDX-License-Identifier: GPL-2.0-only
"""Which files processes have mapped, and what tells these apart."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from foliohost.devices import mounted
from foliohost.errors import NotPermitted, UsageError
from foliohost.processes import Mapping, mappings, seen_by

MappedFile = tuple[str, int, int]
"""Device and inode of a file's mappings. Of btrfs, whose subvolumes may share these, its device as ``os.stat`` has it.

That is 0 where it is not known, and of other file systems.
"""


class MappedFiles:
    """What processes have mapped, look by look."""

    def __init__(self) -> None:
        self._btrfs = {mount.number for mount in mounted() if mount.kind == "btrfs"}
        self._devices: dict[tuple[int, str, tuple[str, int]], int] = {}
        """The last part of each ``MappedFile``, by process, path and the other parts; of the last look."""

    def look(self, pids: Iterable[int]) -> dict[MappedFile, dict[int, list[Mapping]]]:
        """The mappings of each file now, by process; nothing of processes that have ended, or may not be asked."""
        pieces: dict[MappedFile, dict[int, list[Mapping]]] = {}
        known, self._devices = self._devices, {}
        for pid in pids:
            found: list[Mapping] = []
            with suppress(UsageError, NotPermitted):
                found = mappings(pid)
            for mapping in found:
                way = pid, mapping.path, mapping.file
                if way not in self._devices:
                    self._devices[way] = known.get(way) or self._device(pid, mapping)
                pieces.setdefault((*mapping.file, self._devices[way]), {}).setdefault(pid, []).append(mapping)
        return pieces

    def _device(self, pid: int, mapping: Mapping) -> int:
        if mapping.device in self._btrfs:
            with suppress(OSError):
                found = seen_by(pid, mapping).stat()
                return found.st_dev if found.st_ino == mapping.inode else 0
        return 0

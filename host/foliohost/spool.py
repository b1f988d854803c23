# SPDX-License-Identifier: GPL-2.0-only
"""Pages of a trace on disk, until all of them are there. Of those that are not full, as much as they hold."""

from __future__ import annotations

import errno
import os
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from pathlib import Path

from foliohost.errors import DiskFull
from foliohost.files import full_disk_named
from foliohost.processes import PAGE_BYTES
from foliohost.ringbuffer import Event, filled


class Spool:
    """A temporary file, which is gone with us."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 it is closed when all events were read
        self._places: dict[int, array[int]] = {}
        """By processor: where its pages begin."""
        self.size = 0
        """Bytes."""
        self.full_disk = ""
        """A sentence once the disk has no room; empty before."""

    def add(self, fetched: Iterable[Iterable[bytes]]) -> None:
        """Write the pages of each processor; nothing more once the disk is full."""
        if self.full_disk:
            return
        try:
            with full_disk_named(Path(tempfile.gettempdir())):
                for processor, pages in enumerate(fetched):
                    for page in pages:
                        self._write(processor, filled(page))
        except DiskFull as error:
            self.full_disk = str(error)

    def _write(self, processor: int, data: bytes) -> None:
        if os.pwrite(self._file.fileno(), data, self.size) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._places.setdefault(processor, array("Q")).append(self.size)
        self.size += len(data)

    def events(self, parsed: Callable[[bytes], Iterable[Event]]) -> Iterator[Event]:
        """The events of all pages in order, once."""
        with self._file:
            yield from merge(*(self._of(places, parsed) for places in self._places.values()))

    def _of(self, places: Iterable[int], parsed: Callable[[bytes], Iterable[Event]]) -> Iterator[Event]:
        for place in places:
            yield from parsed(os.pread(self._file.fileno(), PAGE_BYTES, place))

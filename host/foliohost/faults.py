# SPDX-License-Identifier: GPL-2.0-only
"""What faults of some processes read of each file, by the kernel's tracepoints. Takes root."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from foliohost.errors import FolioError
from foliohost.processes import PAGE_BYTES
from foliohost.ringbuffer import Event
from foliohost.touches import ADD, FAULT, FIELDS, MAP, Touches, device_name
from foliohost.tracefs import Instance, tracefs

BUFFERS_KIB = 8 << 10
"""In memory, of all processors together."""
LIMIT_BYTES = 64 << 20
"""On disk. Of events, one for each folio read and each fault: over a million."""

_SAMPLE_PAGES = 64
_DRAIN_PERIOD = 0.1


@dataclass(frozen=True)
class FileFaults:
    """What faults did with a file."""

    read_pages: int = 0
    """That they brought into the page cache: their own, and those read ahead."""
    major_faults: int = 0
    """Those that read their own page."""


class FaultTrace:
    """The faults of processes that are ``followed``."""

    def __init__(self, instance: Instance, but: int | None) -> None:
        self._instance, self._but = instance, but
        self._incomplete = ""
        """Why not all was recorded."""
        self._seconds_a_byte = 0.0

    @property
    def watcher(self) -> int:
        """The process that cleans up after us."""
        return self._instance.watcher

    def drain(self) -> None:
        """Fetch what there is; to be called several times a second. Once that is too much, recording ends."""
        if self._incomplete:
            return
        try:
            if self._instance.drain():
                return
            self._incomplete = f"There were more than {LIMIT_BYTES >> 20} MiB of events; the rest was not recorded."
        except OSError as error:
            self._incomplete = _not_kept(error)
        with suppress(OSError):
            self._instance.stop()

    def reading_seconds(self) -> float:
        """How long ``faults`` will take with what there is, by how long the first events took."""
        if self._incomplete:
            return 0.0
        if not self._seconds_a_byte and (pages := self._instance.first_pages(_SAMPLE_PAGES)):
            start = time.monotonic()
            for page in pages:
                self._touches(self._instance.parsed(page))
            self._seconds_a_byte = (time.monotonic() - start) / sum(map(len, pages))
        return self._seconds_a_byte * self._instance.size

    def _touches(self, events: Iterable[Event]) -> Touches:
        touches = Touches(lambda file: True, PAGE_BYTES, 1, keep=False)
        touches.take(event for event in events if event[2][0] != self._but)
        return touches

    def faults(self) -> dict[tuple[str, int], FileFaults]:
        """End recording, and tell of each file, by device and inode as ``Mapping.file`` has them.

        FolioError if that is not all that there was.
        """
        self.drain()
        if self._incomplete:
            raise FolioError(self._incomplete)
        try:
            self._instance.stop()
        except OSError as error:
            raise FolioError(_not_kept(error)) from error
        if lost := self._instance.lost():
            raise FolioError(f"The kernel had no room for {lost:,} events.")
        touches = self._touches(self._instance.events())
        return {
            (device_name(device), inode): FileFaults(touches.read_pages[number], touches.majors[number])
            for (device, inode), number in touches.files.items()
        }


@contextmanager
def followed(pids: Collection[int], but: int | None = None) -> Iterator[FaultTrace]:
    """The faults of some processes, and of what these start, while the block lasts. Nothing stays enabled behind it.

    ``but`` is one of the processes that is followed for what it starts alone. FolioError where the kernel has no such
    events, or somebody who is not root asks.
    """
    if not (tracefs() / "events" / FAULT).is_dir():
        raise FolioError(f"This kernel has no tracepoint {FAULT.partition('/')[2]}; Linux since 6.11 has.")
    # A fault that has read its page mostly ends in MAP; what comes into the cache after that is not its own.
    fields = {name: FIELDS[name] for name in (ADD, FAULT, MAP)}
    with Instance(fields, LIMIT_BYTES, buffers_kib=BUFFERS_KIB) as instance:
        instance.start(pids)
        yield FaultTrace(instance, but)


def _not_kept(error: OSError) -> str:
    return f"The kernel's trace cannot be kept: {error.strerror}."


def reading_seconds(trace: FaultTrace | str) -> float:
    """How long ``faults_of`` will take with what there is."""
    return trace.reading_seconds() if isinstance(trace, FaultTrace) else 0.0


def wait(left: Callable[[], float], trace: FaultTrace | str) -> None:
    """Sleep until no seconds are ``left``, and fetch what the trace has meanwhile."""
    while (seconds := left()) > 0:
        time.sleep(min(seconds, _DRAIN_PERIOD))
        if isinstance(trace, FaultTrace):
            trace.drain()


def faults_of(
    trace: FaultTrace | str, files: Collection[tuple[str, int]]
) -> tuple[dict[tuple[str, int], FileFaults], str]:
    """What faults did with each of these files, as far as that is known, and why nothing is."""
    if isinstance(trace, str):
        return {}, trace
    try:
        found = trace.faults()
    except FolioError as error:
        return {}, str(error)
    return with_idle(found, files), ""


def with_idle(
    found: dict[tuple[str, int], FileFaults], files: Collection[tuple[str, int]]
) -> dict[tuple[str, int], FileFaults]:
    """Those found, and files without events as without faults, unless other files were read than these.

    On some file systems events have other numbers than mappings, and then these would be the files that were read.
    """
    if all(file in files for file, faults in found.items() if faults.read_pages):
        return dict.fromkeys(files, FileFaults()) | found
    return found

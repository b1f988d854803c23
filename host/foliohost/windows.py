# SPDX-License-Identifier: GPL-2.0-only
"""Set windows: of a device, and of files that running processes have open.

A file gets its window from the device when it is opened, and again at POSIX_FADV_NORMAL. So the device has the wanted
one for a moment, in which the descriptors of the processes, fetched by pidfd_getfd, are given that advice. Nothing is
remembered here: ``state.py`` does that before.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from foliohost.details import Details, details
from foliohost.errors import FolioError, NoCure, NotPermitted, UsageError
from foliohost.processes import PAGE_BYTES, all_processes, mappings, numbers_by_inode, same_file, start_time

MOST_KB = 16384
"""The largest window that we set."""


@dataclass(frozen=True)
class OpenFile:
    """A file that a process has open, by one descriptor or more."""

    path: str
    pid: int
    started: int
    """When the process did, in clock ticks since boot."""
    number: int
    """Of the file system, as ``os.stat`` has it."""
    inode: int

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from other open files; its path may be another one by now."""
        return self.pid, self.started, self.number, self.inode

    @property
    def status(self) -> os.stat_result:
        """What tells it from other files, as ``os.stat`` would; it has nothing else."""
        return os.stat_result((0, self.inode, self.number, 0, 0, 0, 0, 0, 0, 0))


class Closed(NoCure):
    """An open file that is no more: closed, or its process has ended."""


class Descriptors:
    """By which numbers processes have files open, each as it was when it was first asked about.

    Some have thousands of files open, and each look goes through all of them.
    """

    def __init__(self) -> None:
        self._by_inode: dict[tuple[int, int], dict[int, list[int]]] = {}
        self._of: dict[tuple[object, ...], list[int]] = {}

    def of(self, file: OpenFile) -> list[int]:
        process = file.pid, file.started
        if process not in self._by_inode:
            self._by_inode[process] = numbers_by_inode(file.pid)
        if file.key not in self._of:
            numbers = self._by_inode[process].get(file.inode, [])
            self._of[file.key] = [number for number in numbers if _is_open(file, number)]
        return self._of[file.key]


def _is_open(file: OpenFile, number: int) -> bool:
    with suppress(OSError):
        return os.path.samestat(Path(f"/proc/{file.pid}/fd/{number}").stat(), file.status)
    return False


def open_in(pid: int, path: Path) -> OpenFile:
    """A file as one process has it open, which ``held`` makes sure of; UsageError if either does not exist."""
    status = path.stat()
    return OpenFile(str(path.absolute()), pid, start_time(pid), status.st_dev, status.st_ino)


def open_anywhere(path: Path) -> list[OpenFile]:
    """A file as each process has it open that lets us look."""
    told, found = Descriptors(), []
    for pid in sorted(all_processes()):
        with suppress(FolioError, OSError):
            if told.of(file := open_in(pid, path)):
                found.append(file)
    return found


def require_window(read_ahead_kb: int) -> None:
    """UsageError for a window that the kernel would round, or that is too large."""
    page_kb = PAGE_BYTES >> 10
    if not 0 <= read_ahead_kb <= MOST_KB or read_ahead_kb % page_kb:
        raise UsageError(f"--read-ahead-kb is a multiple of {page_kb} from 0 to {MOST_KB}, not {read_ahead_kb}.")


def require_heeded(files: Sequence[OpenFile]) -> None:
    """NoCure if all these processes map their file in the one way that has no window."""
    if all(map(_is_unheeded, files)):
        raise NoCure(
            f"Process {files[0].pid} maps this file with the hint for random access, so it reads single pages, whatever"
            " the window is."
        )


def _is_unheeded(file: OpenFile) -> bool:
    """Whether a process maps its file by that hint alone; not if it has ended, which is told later."""
    told = details(file.pid) or {}
    with suppress(UsageError):
        mine = (mapping.start for mapping in mappings(file.pid) if same_file(file.pid, mapping, file.status))
        return {told.get(start, Details()).hint for start in mine} == {"random"}
    return False


def window_of(attribute: Path) -> int:
    """A device's window in KiB; NoCure if the device is gone."""
    try:
        return int(attribute.read_text())
    except OSError as error:
        raise NoCure(f"{attribute} cannot be read: {error.strerror}.") from error


def set_device(attribute: Path, read_ahead_kb: int) -> None:
    """Give a device another window; NotPermitted without root, NoCure if it is gone or keeps its own."""
    with _writing(attribute) as target:
        os.write(target, b"%d" % read_ahead_kb)
    if (there := window_of(attribute)) != read_ahead_kb:
        raise NoCure(f"{attribute} has {there} KiB after {read_ahead_kb} were written.")


def give_window(attribute: Path, read_ahead_kb: int, handles: Sequence[int]) -> int:
    """Give open files, by descriptors of ours, a window; returns how long their device had it, in nanoseconds.

    No signal but SIGKILL ends us meanwhile.
    """
    before = window_of(attribute)
    with _writing(attribute) as target:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        began = time.monotonic_ns()
        try:
            if before != read_ahead_kb:
                os.write(target, b"%d" % read_ahead_kb)
            for handle in handles:
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_NORMAL)
        finally:
            try:
                if before != read_ahead_kb:
                    os.write(target, b"%d" % before)
            finally:
                spent = time.monotonic_ns() - began
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    if (there := window_of(attribute)) != before:
        raise NoCure(f"{attribute} has {there} KiB after {before} were written.")
    return spent if before != read_ahead_kb else 0


def require_settable(attribute: Path) -> None:
    """NotPermitted without root, NoCure if the device is gone."""
    with _writing(attribute):
        pass


@contextmanager
def _writing(attribute: Path) -> Iterator[int]:
    """A descriptor for a device's window.

    Linux 6.12 stops the whole queue, and waits for what is in flight, for a write to ``queue/``; not for one to
    ``bdi/``, which is the same number.
    """
    twin = attribute.parent.parent / "bdi/read_ahead_kb"
    try:
        target = os.open(twin if twin.exists() else attribute, os.O_WRONLY | os.O_CLOEXEC)
        try:
            yield target
        finally:
            os.close(target)
    except PermissionError as error:
        raise NotPermitted(f"Only root may write {attribute}.") from error
    except OSError as error:
        raise NoCure(f"{attribute} cannot be written: {error.strerror}.") from error

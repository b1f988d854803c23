# SPDX-License-Identifier: GPL-2.0-only
"""Set windows: of a device, and of one open file of a running process.

A file gets its window from the device when it is opened, and again at POSIX_FADV_NORMAL. So the device has the wanted
one for a moment, in which the descriptor of the process, fetched by pidfd_getfd, is given that advice.
"""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foliohost.details import Details, details
from foliohost.devices import HostDevice
from foliohost.errors import NoCure, NotPermitted, UsageError
from foliohost.processes import PAGE_BYTES, descriptors, mappings, same_file, start_time

MOST_KB = 16384
"""The largest window that we set."""
_PIDFD_GETFD = 438  # on every architecture
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def require_window(read_ahead_kb: int) -> None:
    """UsageError for a window that the kernel would round, or that is too large."""
    page_kb = PAGE_BYTES >> 10
    if not 0 <= read_ahead_kb <= MOST_KB or read_ahead_kb % page_kb:
        raise UsageError(f"--read-ahead-kb is a multiple of {page_kb} from 0 to {MOST_KB}, not {read_ahead_kb}.")


def set_device(attribute: Path, read_ahead_kb: int) -> None:
    """Give a device another window; NotPermitted without root, NoCure if it is gone or keeps its own."""
    try:
        attribute.write_text(str(read_ahead_kb))
    except PermissionError as error:
        raise NotPermitted(f"Only root may write {attribute}.") from error
    except OSError as error:
        raise NoCure(f"{attribute} cannot be written: {error.strerror}.") from error
    if (there := int(attribute.read_text())) != read_ahead_kb:
        raise NoCure(f"{attribute} has {there} KiB after {read_ahead_kb} were written.")


def set_open_file(pid: int, started: int, file: os.stat_result, device: HostDevice, read_ahead_kb: int) -> list[int]:
    """Give all open files of a process that are this file a window; returns the descriptors' numbers.

    NoCure if it has none, or is no longer the process that started then, or maps the file in a way that has no window.
    """
    with _process(pid, started) as pidfd:
        numbers = descriptors(pid, file)
        if not numbers:
            raise NoCure(
                f"Process {pid} has no descriptor of this file: it has closed it after mapping, as Lucene and RocksDB"
                " do, or never opened it. Only the device's window or the engine's own switch helps there."
            )
        told = details(pid) or {}
        hints = {told.get(mapping.start, Details()).hint for mapping in mappings(pid) if same_file(pid, mapping, file)}
        if hints == {"random"}:
            raise NoCure(
                f"Process {pid} maps this file with the hint for random access, so it reads single pages, whatever the"
                " window is."
            )
        fetched = [_fetch(pidfd, pid, number) for number in numbers]
        try:
            mine = [handle for handle in fetched if os.path.samestat(os.fstat(handle), file)]
            if not mine:
                raise NoCure(f"Process {pid} closed the file meanwhile.")
            with _for_a_moment(device.attribute, read_ahead_kb):
                for handle in mine:
                    _advise(handle, pid)
        finally:
            for handle in fetched:
                os.close(handle)
    return numbers


@contextmanager
def _process(pid: int, started: int) -> Iterator[int]:
    try:
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        if error.errno == errno.ENOSYS:
            raise NoCure("This kernel has no pidfd_getfd; Linux 5.6 has.") from error
        raise UsageError(f"There is no process {pid}.") from error
    try:
        if start_time(pid) != started:
            raise NoCure(f"Process {pid} is another one by now.")
        yield pidfd
    finally:
        os.close(pidfd)


def _fetch(pidfd: int, pid: int, number: int) -> int:
    try:
        return pidfd_getfd(pidfd, number)
    except PermissionError as error:
        raise NotPermitted(f"Only root may take a descriptor of process {pid}.") from error
    except OSError as error:
        if error.errno == errno.ENOSYS:
            raise NoCure("This kernel has no pidfd_getfd; Linux 5.6 has.") from error
        raise NoCure(f"Descriptor {number} of process {pid} cannot be taken: {error.strerror}.") from error


def pidfd_getfd(pidfd: int, number: int) -> int:
    """A descriptor of ours for the open file that another process has under ``number``; OSError as the kernel says.

    Since Linux 5.6. Both share everything but the number: position, flags, and the window. Python does not have it.
    """
    arguments = (_PIDFD_GETFD, pidfd, number, 0)
    found: int = _libc.syscall(*(ctypes.c_long(argument) for argument in arguments))
    if found < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return found


def _advise(handle: int, pid: int) -> None:
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_NORMAL)
    except OSError as error:  # of O_PATH, for instance
        raise NoCure(f"The kernel takes no advice about this file of process {pid}: {error.strerror}.") from error


@contextmanager
def _for_a_moment(attribute: Path, read_ahead_kb: int) -> Iterator[None]:
    """Have a device with this window, and put its own back however we end.

    Putting back is the work of a process of its own, which waits for the other end of a pipe to close: SIGKILL does
    that, too.
    """
    before = int(attribute.read_text())
    if before == read_ahead_kb:
        yield
        return
    words = 'trap "" HUP INT TERM; echo; read -r _; echo "$1" >"$2"'
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", words, "sh", str(before), str(attribute)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert keeper.stdout
    try:
        keeper.stdout.readline()  # it is there, and deaf
        set_device(attribute, read_ahead_kb)
        yield
    finally:
        keeper.communicate()
    if keeper.returncode or int(attribute.read_text()) != before:
        raise NoCure(f"{attribute} could not be put back; it was {before}.")

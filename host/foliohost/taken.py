# SPDX-License-Identifier: GPL-2.0-only
"""Descriptors of ours for files that other processes have open."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from foliohost.errors import FolioError, NoCure, NotPermitted, UsageError
from foliohost.libc import call
from foliohost.limits import raise_limit
from foliohost.processes import start_time
from foliohost.windows import Closed, Descriptors, OpenFile

_PIDFD_GETFD = 438  # on every architecture
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
_ROOM = 16


@contextmanager
def held(file: OpenFile, told: Descriptors | None = None) -> Iterator[list[int]]:
    """Descriptors of ours for all by which a process has a file open, or had when ``told`` looked.

    Closed if it has none, or is no longer the process that started then; UsageError if it has ended.
    """
    raise_limit()
    with _process(file) as pidfd:
        numbers = (told or Descriptors()).of(file)
        if not numbers:
            raise Closed(
                f"Process {file.pid} has no descriptor of this file: it has closed it after mapping, as Lucene and"
                " RocksDB do, or never opened it. Only the device's window or the engine's own switch helps there."
            )
        fetched: list[int] = []
        try:
            for number in numbers:
                with suppress(_DescriptorClosed):
                    fetched.append(_fetch(pidfd, file.pid, number))
            mine = [handle for handle in fetched if _takes_advice(handle, file)]
            if not mine:
                raise Closed(f"Process {file.pid} closed the file meanwhile, or has it open by O_PATH alone.")
            yield mine
        finally:
            for handle in fetched:
                os.close(handle)


@contextmanager
def all_held(
    files: Iterable[OpenFile], told: Descriptors
) -> Iterator[tuple[list[int], list[OpenFile], list[FolioError]]]:
    """Descriptors of ours for open files, the files that these are of, and why others of them cannot be held.

    TooMany is among these reasons if they are more than we may have open. Those that come after that are left out.
    """
    handles: list[int] = []
    reached: list[OpenFile] = []
    faults: list[FolioError] = []
    raise_limit()
    with ExitStack() as block:
        try:
            with _room():
                for file in files:
                    try:
                        handles += block.enter_context(held(file, told))
                        reached.append(file)
                    except TooMany:
                        raise
                    except FolioError as error:
                        faults.append(error)
        except OSError as error:
            if error.errno not in _TOO_MANY:
                raise
            faults.append(TooMany())
        except TooMany as error:
            faults.append(error)
        yield handles, reached, faults


@contextmanager
def _room() -> Iterator[None]:
    """Keep some descriptors free that are needed afterwards, for the device and the state."""
    with ExitStack() as block:
        for _ in range(_ROOM):
            block.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        yield


class TooMany(NoCure):
    """More descriptors than we may have."""

    def __init__(self) -> None:
        super().__init__("These are more open files than may be held at a time here (ulimit -n).")


class _DescriptorClosed(Exception):
    """A descriptor that a process had when we looked, and has closed since; it may have others of the file."""


def _takes_advice(handle: int, file: OpenFile) -> bool:
    path_alone = fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_PATH
    return not path_alone and os.path.samestat(os.fstat(handle), file.status)


@contextmanager
def _process(file: OpenFile) -> Iterator[int]:
    try:
        pidfd = os.pidfd_open(file.pid)
    except OSError as error:
        if error.errno == errno.ESRCH:
            raise UsageError(f"There is no process {file.pid}.") from error
        raise _not_taken(error, f"Process {file.pid}") from error
    try:
        if start_time(file.pid) != file.started:
            raise Closed(f"Process {file.pid} is another one by now.")
        yield pidfd
    finally:
        os.close(pidfd)


def _fetch(pidfd: int, pid: int, number: int) -> int:
    try:
        return pidfd_getfd(pidfd, number)
    except PermissionError as error:
        raise NotPermitted(f"Only root may take a descriptor of process {pid}.") from error
    except OSError as error:
        if error.errno == errno.EBADF:
            raise _DescriptorClosed from error
        if error.errno == errno.ESRCH:
            raise UsageError(f"There is no process {pid}.") from error
        raise _not_taken(error, f"Descriptor {number} of process {pid}") from error


def _not_taken(error: OSError, what: str) -> NoCure:
    if error.errno == errno.ENOSYS:
        return NoCure("This kernel has no pidfd_getfd; Linux 5.6 has.")
    if error.errno in _TOO_MANY:
        return TooMany()
    return NoCure(f"{what} cannot be taken: {error.strerror}.")


def pidfd_getfd(pidfd: int, number: int) -> int:
    """A descriptor of ours for the open file that another process has under ``number``; OSError as the kernel says.

    Since Linux 5.6. Both share everything but the number: position, flags, and the window. Python does not have it.
    """
    return call("syscall", *map(ctypes.c_long, (_PIDFD_GETFD, pidfd, number, 0)))

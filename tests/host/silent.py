# SPDX-License-Identifier: GPL-2.0-only
"""A file system with one file, whose server can stop answering, as one of a network does."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

_LOOKUP, _GETATTR, _OPEN, _INIT = 1, 3, 14, 26
_ROOT, _FILE = 1, 2
"""Inodes."""
_REQUEST = struct.Struct("=IIQQ")
"""Of a request: length, kind, number, inode. What it is about begins after ``_HEAD_BYTES``."""
_HEAD_BYTES = 40
_NOT_KNOWN = -38  # ENOSYS
_AT_ONCE = 1 | 2
"""MNT_FORCE, which ends all requests, and MNT_DETACH."""


def _facts(inode: int) -> bytes:
    mode = 0o40755 if inode == _ROOT else 0o100644
    return struct.pack("=6Q10I", inode, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def _answer(kind: int, inode: int) -> bytes | None:
    """Nothing is remembered: all times for that are 0."""
    answers = {
        _INIT: struct.pack("=4I2H2I2H8I", 7, 31, 0, 0, 0, 0, 4096, 1, 1, 0, *[0] * 8),
        _LOOKUP: struct.pack("=4Q2I", _FILE, 0, 0, 0, 0, 0) + _facts(_FILE),
        _GETATTR: struct.pack("=Q2I", 0, 0, 0) + _facts(inode),
        _OPEN: struct.pack("=Q2I", 0, 0, 0),
    }
    return answers.get(kind)


def _serve(device: int, silent: Event) -> None:
    with suppress(OSError):  # it was unmounted
        while True:
            request = os.read(device, 1 << 17)
            if silent.is_set():
                return
            _, kind, number, inode = _REQUEST.unpack_from(request)
            answer = _answer(kind, inode)
            error, content = (_NOT_KNOWN, b"") if answer is None else (0, answer)
            os.write(device, struct.pack("=IiQ", 16 + len(content), error, number) + content)


@contextmanager
def silent_server(place: Path) -> Iterator[tuple[Path, Event]]:
    """A file, and what makes its server silent; after the block, whoever waits for it is told that it is gone."""
    libc, silent = ctypes.CDLL(None, use_errno=True), Event()
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        pytest.skip(f"FUSE cannot be had: {error}")
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"silent", os.fsencode(place), b"fuse", 0, options):
        os.close(device)
        pytest.skip(f"mounting takes root: {os.strerror(ctypes.get_errno())}")
    server = Thread(target=_serve, args=(device, silent), daemon=True)
    server.start()
    try:
        yield place / "file", silent
    finally:
        libc.umount2(os.fsencode(place), _AT_ONCE)
        server.join()
        os.close(device)

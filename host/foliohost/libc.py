# SPDX-License-Identifier: GPL-2.0-only
"""What the C library does and Python does not: mappings that tell what is cached of them, and kinds of file systems."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
_libc.statfs.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
_libc.syscall.restype = ctypes.c_long
_BTRFS = 0x9123683E
"""BTRFS_SUPER_MAGIC."""
_FAILED = ctypes.c_void_p(-1).value


def last_error(what: str | None = None) -> OSError:
    """Of the last call of a C library that fails; ``what`` stands for the file's name in what is said of it."""
    return OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)


def call(name: str, *words: object) -> int:
    """What a function of the C library returns; OSError if it fails."""
    found: int = getattr(_libc, name)(*words)
    if found < 0:
        raise last_error()
    return found


def is_btrfs(path: Path) -> bool:
    """Whether btrfs holds a file; not if it is gone."""
    facts = ctypes.create_string_buffer(256)  # struct statfs, which begins with the kind
    return not _libc.statfs(os.fsencode(path), facts) and ctypes.c_long.from_buffer(facts).value == _BTRFS


@contextmanager
def mapping(file: int, size: int) -> Iterator[int]:
    """The address of a shared mapping of an open file's first bytes. OSError if it cannot be mapped."""
    address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
    if address == _FAILED:
        raise last_error(f"A mapping of {size:,} bytes")
    try:
        yield address
    finally:
        _libc.munmap(address, size)


def advise_random(address: int, size: int) -> None:
    """Give the hint for random access."""
    _libc.madvise(address, size, mmap.MADV_RANDOM)


def residency(address: int, size: int) -> bytes:
    """For each page of a mapping, a byte whose lowest bit says whether it is cached. OSError if that is not told."""
    flags = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
    if _libc.mincore(address, size, flags):
        raise last_error("What is cached")
    return flags.raw

# SPDX-License-Identifier: GPL-2.0-only
"""Which pages of a file are in the page cache."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from foliohost.bits import pack
from foliohost.files import open_regular
from foliohost.libc import mapping, residency

MOST_BYTES = 64 << 30
"""Of a file whose cached pages are worth asking for: some 3 s."""

_RESIDENT = bytes(byte & 1 for byte in range(256))
_CAP_FOWNER = 3


def cached(path: Path, only: os.stat_result | None = None) -> int | None:
    """The pages of a file that are in the page cache, as bits of an int; None if we may not know that (mincore), it is
    too large, or another one than ``only``.

    The kernel tells it to the file's owner, to root of the whole machine, and to whoever may write it. To others it
    says that all is there.
    """
    try:
        handle = open_regular(path)
    except OSError:
        return None
    try:
        facts = os.fstat(handle)
        if facts.st_size > MOST_BYTES or (only and not os.path.samestat(facts, only)):
            return None
        if not (os.geteuid() == facts.st_uid or os.access(path, os.W_OK) or _owns_all()):
            return None
        return _resident(handle, facts.st_size) if facts.st_size else 0
    finally:
        os.close(handle)


def _owns_all() -> bool:
    """Whether the kernel has us do what the owner of any file may."""
    return is_owner_of_all(*(Path("/proc/thread-self", name).read_bytes() for name in ("status", "uid_map")))


def is_owner_of_all(status: bytes, uid_map: bytes) -> bool:
    """The same by the texts of these files below ``/proc``: CAP_FOWNER, in a name space that has all users."""
    found = re.search(rb"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    capable = found and int(found[1], 16) >> _CAP_FOWNER & 1
    return bool(capable) and uid_map.split() == [b"0", b"0", b"4294967295"]


def _resident(handle: int, size: int) -> int | None:
    with suppress(OSError), mapping(handle, size) as address:
        return pack(residency(address, size).translate(_RESIDENT))
    return None

# SPDX-License-Identifier: GPL-2.0-only
"""What only ``/proc/PID/smaps`` tells of mappings: hints, and what PMDs map.

For each mapping the kernel walks all of its page tables, while nobody else can change the process's mappings. So it
is read now and then, and not at all where it would take long.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from foliohost.processes import PAGE_BYTES

MOST_SECONDS = 0.25
"""Of a processor that reading may take."""
MOST_LOCKED_SECONDS = 0.05
"""That the kernel may walk the page tables of one mapping: the program's mmap() and munmap() wait meanwhile."""

_ENTRY_SECONDS, _PAGE_SECONDS = 2e-9, 20e-9
"""For each entry of a page table, and for each page that is mapped: what walks take on slow machines."""
_ENTRY_BYTES = 8
_CHUNK = 1 << 16
_WORDS = re.compile(rb"^([0-9a-f]+)-[0-9a-f]+ |^FilePmdMapped: +([1-9][0-9]*) kB$|^VmFlags:.* (rr|sr)\b", re.MULTILINE)
_HINTS = {b"rr": "random", b"sr": "sequential"}


@dataclass(frozen=True)
class Details:
    """Of a mapping."""

    hint: str = ""
    """random or sequential, if the program has said so (madvise)."""
    pmd_bytes: int = 0
    """Mapped by entries of a whole PMD (FilePmdMapped)."""


def details(pid: int) -> dict[int, Details] | None:
    """What there is to tell, by the mappings' first addresses; None of a process that is too large, gone, or not ours.

    If reading takes too long, only of those with the lowest addresses.
    """
    try:
        return _parsed(_smaps(pid)) if _walk_seconds(pid) <= MOST_LOCKED_SECONDS else None
    except (OSError, ValueError):
        return None


def _walk_seconds(pid: int) -> float:
    """How long the kernel takes at most to walk all page tables of a process, as if one mapping had all."""
    status = dict(re.findall(rb"^(\w+):\s*(\d+) kB$", Path(f"/proc/{pid}/status").read_bytes(), re.MULTILINE))
    tables, pages = (int(status.get(name, 0)) * 1024 for name in (b"VmPTE", b"VmRSS"))
    return tables / _ENTRY_BYTES * _ENTRY_SECONDS + pages / PAGE_BYTES * _PAGE_SECONDS


def _smaps(pid: int) -> bytes:
    until = time.process_time() + MOST_SECONDS
    parts = []
    with Path(f"/proc/{pid}/smaps").open("rb", buffering=0) as stream:
        while time.process_time() < until and (part := os.read(stream.fileno(), _CHUNK)):
            parts.append(part)
    return b"".join(parts)


def _parsed(text: bytes) -> dict[int, Details]:
    """Those of the mappings that have any."""
    found: dict[int, Details] = {}
    start = pmd_bytes = 0
    for head, pmd_kib, flag in _WORDS.findall(text):
        if head:
            start, pmd_bytes = int(head, 16), 0
        elif pmd_kib:
            pmd_bytes = int(pmd_kib) << 10
            found[start] = Details("", pmd_bytes)
        else:
            found[start] = Details(_HINTS[flag], pmd_bytes)
    return found

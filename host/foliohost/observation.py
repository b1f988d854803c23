# SPDX-License-Identifier: GPL-2.0-only
"""What was seen of processes in a time, from which all else is worked out without looking at the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foliohost.processes import PAGE_BYTES, Counters
from foliohost.runs import RunsSeen


@dataclass(frozen=True)
class FileSeen:
    """What was seen of one mapped file."""

    path: str
    """As we see it; in another container, below ``/proc/PID/root``."""
    device: str
    rotational: bool | None
    window_kb: int
    """That the device gave to files opened when this one was first seen, which may have another."""
    text: bool
    hint: str
    size_bytes: int
    rss_bytes: int
    pmd_mapped_bytes: int
    mapped_pages: int
    """That came into page tables: touched, or mapped around a touch."""
    places: int
    """Blocks of 64 KiB with such pages: at least one touch each."""
    followers: int
    """Places right behind another that came in the same look, less those that chance brings."""
    crowds: tuple[tuple[int, float], ...]
    """Of the blocks mapped when most of the file was, how many are where touches met each so often; of ``PageBits``."""
    cached_pages: int | None
    """That came into the page cache, whoever read or wrote them; None if that may not be known."""
    fresh_pages: int
    """Of these, those with a page beside them that was not cached either."""
    evicted_pages: int
    """That left the page cache."""
    fault_pages: int | None
    """That faults of the processes brought into the cache, by tracepoints; None if these could not be followed."""
    major_faults: int | None
    """Likewise."""
    read_before: int
    """Bytes that the processes had read, of any file, when they were first seen to map this one."""
    resident_bytes: int | None
    """In the page cache at the end."""
    processes: tuple[int, ...]
    """That were seen to map it, at any look; those that live between two looks are missed."""
    open_in: tuple[int, ...]
    """Processes that have the file open as well."""
    alive: bool
    """Whether one of them still runs."""
    engine: str = ""
    """Empty if it is of none that is known, or nobody has looked: a look reads nothing of the file."""
    hint_known: bool = True
    """Whether the kernel was asked for ``hint``, which takes long where much is mapped."""
    one_in: int = 1
    """Of the pages that are mapped, one in so many was looked at; ``mapped_pages`` and ``places`` are of all."""
    runs: RunsSeen | None = None
    """How touches went on from block to block, by tracepoints; None if these could not be followed."""
    come_and_gone: bool = False
    """Whether others had mapped it than those at the last look that met it: there may be more that no look met."""


@dataclass(frozen=True)
class Observation:
    """What processes did in a time."""

    seconds: float
    counted: Counters
    before: Counters
    """What they had done before; nothing of a command."""
    unseen: Counters
    """The part of ``counted`` after the last look at the page tables."""
    files: tuple[FileSeen, ...]
    machine_read_bytes: int
    """By everybody, of all block devices."""
    machine_major_faults: int
    page_bytes: int = PAGE_BYTES
    switches: Mapping[str, bool] = field(default_factory=dict)
    """Whether our kernel's and our module's window is on, by the file that switches it; only files that exist."""
    module_tried: bool = False
    """Whether our module was tried on the kernel that runs here."""
    untraced: str = ""
    """Why tracepoints tell nothing; empty if they do."""
    trace_doubt: str = ""
    """What is doubtful of what they tell; empty if nothing is."""

    @property
    def adaptive(self) -> bool:
        """Whether our kernel or module decides what misses read."""
        return any(self.switches.values())

# SPDX-License-Identifier: GPL-2.0-only
"""What page faults of one file read, from a trace of the kernel's."""

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from foliolab.arch import Bytes
from foliolab.errors import StoreError

_EVENT = re.compile(
    r"mm_filemap_(?P<what>add_to_page_cache|fault|map_pages): dev[ =](?P<device>\d+:\d+) ino[ =](?P<inode>[0-9a-f]+) "
    r"(?:pfn=\S+ )?ofs=(?P<first>\d+)(?:-(?P<last>\d+))?(?: order=(?P<order>\d+))?"
)
EVENTS = ("add_to_page_cache", "fault", "map_pages")
"""Of filemap's tracepoints: those that a trace has to have, without mm_filemap_."""

READS = Path("docs/reads.svg")
"""The picture of the README, in the repository."""
RECORDED = "reads.json"
"""Beside the store: what ./lab demo --picture recorded last."""
PICTURED = "sparse-mmap"
"""The experiment whose touches it shows."""
READ_AHEAD_KB = 4096
"""The window with which it is recorded."""


@dataclass(frozen=True)
class Stretch:
    """Adjacent bytes of the file that one fault made the kernel read."""

    fault: int
    """Counted from 1; 0 for what was read before any."""
    offset: int
    size: int


@dataclass(frozen=True)
class Reads:
    """All that was read of one file."""

    faults: int
    """Also those that found their page cached."""
    runs: tuple[Stretch, ...]

    @property
    def size(self) -> Bytes:
        return sum(run.size for run in self.runs)

    @property
    def reading(self) -> int:
        """How many of the faults read something."""
        return len({run.fault for run in self.runs} - {0})


@dataclass(frozen=True)
class Panel:
    title: str
    reads: Reads


@dataclass(frozen=True)
class RecordedReads:
    """What kernels read of one file for the same touches, and what with."""

    panels: tuple[Panel, ...]
    file_bytes: int
    touched_bytes: int
    kernel: str
    """Its hash."""
    code: str
    """The hash of our code in it."""
    backend: str


def recorded_reads(file: Path) -> RecordedReads | None:
    """What ``./lab demo --picture`` has kept; None without it. StoreError if it is damaged."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=RecordedReads)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StoreError(f"{file} is damaged ({error}); './lab demo --picture FILE' makes it anew.") from None


def parse(trace: str, device: str, page_size: int) -> Reads:
    """What the text of a trace says of the file that was read most on ``device``, such as 254:0."""
    events = [found for found in _EVENT.finditer(trace) if found["device"] == device]
    added = [found["inode"] for found in events if found["what"] == "add_to_page_cache"]
    inode = max(set(added), key=added.count, default=None)
    faults, place = 0, range(0)  # what the latest fault was about
    runs: list[Stretch] = []
    for found in events:
        first = int(found["first"])
        if found["inode"] != inode:
            continue
        if found["what"] == "add_to_page_cache":
            size = page_size << int(found["order"] or 0)
            last = runs[-1] if runs else None
            if last and (last.fault, last.offset + last.size) == (faults, first):
                runs[-1] = Stretch(faults, last.offset, last.size + size)
            else:
                runs.append(Stretch(faults, first, size))
            continue
        # A fault first maps what is cached around its page, and again when it has read that, maybe in a second try.
        here = range(first, int(found["last"] or first) + 1)
        if not (here.start in place or place.start in here):
            faults += 1
            place = here
        elif len(here) == 1:
            place = here
    return Reads(faults, tuple(runs))

# SPDX-License-Identifier: GPL-2.0-only
"""What a remedy would read of a file, how often a program would wait for that, and how long: arithmetic alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from foliohost.pages import AROUND_PAGES
from foliohost.processes import PAGE_BYTES
from foliohost.shares import FileShare

_FULL = 0.995
"""Of the blocks around a place: if more are mapped, that does not tell how often they were touched."""
_STREAM = 1.5
"""Windows read for each wait, above which some of them were read ahead of a stream."""
_EVICTS = 0.2
"""Of the pages read, so many evicted ones mean that memory is short."""
_LEAST_RUN = 1.5
"""Pages of a run, below which it may be chance that blocks follow one another."""
_MOST_BEHIND = 0.9


@dataclass(frozen=True)
class DiskCost:
    """What a read takes on a disk, in microseconds: a request, and each of its pages."""

    request_us: float
    page_us: float


@dataclass(frozen=True)
class Load:
    """Reads of a file."""

    pages: float
    waits: float
    """Major faults."""
    requests: float
    """Reads of the disk. For those ahead of a stream no major fault is counted."""
    turns: float
    """Times that a program waits for a request's latency. Ahead of a stream, two requests are under way at a time."""

    def seconds(self, cost: DiskCost) -> float:
        """How long one program waits for the disk."""
        return (self.turns * cost.request_us + self.pages * cost.page_us) / 1e6


def present_load(read_bytes: int, waits: float, window_pages: int) -> Load:
    """What was read, with a window so large."""
    pages = read_bytes / PAGE_BYTES
    requests = max(waits, pages / max(1, window_pages))
    return Load(pages, waits, requests, waits + (requests - waits) / 2)


@dataclass(frozen=True)
class Touched:
    """What a program touches of a file: runs of adjacent pages."""

    runs: float
    run_pages: float
    """Of each run."""
    region_pages: float
    """The part of the file in which they are. Infinite if pages are evicted: then what was read is read again."""
    waited: float
    """Of the runs, those that waited with the present window: with a smaller one they do as well."""

    def load(self, window_pages: int) -> Load:
        """What is read with a window; one of 0 or 1 pages reads single pages, as the hint for random access does.

        Where windows cover much of the region, some of them are in memory already.
        """
        if window_pages <= 1:
            requests = self.runs * self.run_pages
            found = Load(requests, requests, requests, requests)
        else:
            windows = _windows(self.run_pages, window_pages)
            requests = self.runs * windows
            turns = self.runs * (1 + max(min(windows - 1, 1), (windows - 1) / 2))
            found = Load(requests * window_pages, self.runs, requests, turns)
        whole = self.region_pages / max(1, window_pages)
        if not requests or math.isinf(whole):
            return found
        left = max(whole / requests * (1 - math.exp(-requests / whole)), self.waited / self.runs)
        return Load(found.pages * left, found.waits * left, found.requests * left, found.turns * left)


def _windows(run_pages: float, window_pages: int) -> float:
    """How many windows a run reads.

    A miss reads the first window around it, whose last quarter is marked. Who touches the first marked page has the
    next window read, which is marked at its first page, and so on (mm/filemap.c, mm/readahead.c).
    """
    behind = run_pages - 1
    marked = max(1, window_pages // 4)
    if behind < marked:
        return 1 + max(0.0, behind - marked + 1)
    return 2 + max(0.0, (behind - window_pages / 2) / window_pages + 0.5)


def touched(file: FileShare, window_pages: int, waits: float, unseen: float = 0.0) -> Touched:
    """What was touched of a file for which a program waited so often, ``unseen`` times of that after the last look.

    While nothing is evicted, places tell the runs: the present window has spared some of them a wait. Once as much is
    evicted as is read, what spares a wait is memory and no window, and then waits tell the runs.
    """
    seen, read_pages = file.seen, (file.read_bytes or 0) / PAGE_BYTES
    density = min(seen.density, _FULL)
    region = min(seen.places / density * AROUND_PAGES if density else math.inf, seen.size_bytes / PAGE_BYTES)
    single = window_pages <= 1 or seen.hint == "random"
    behind = min(seen.followers / seen.places, _MOST_BEHIND) if seen.places else 0.0
    run_pages = 1 + AROUND_PAGES * behind / (1 - behind)
    if run_pages < _LEAST_RUN:
        behind, run_pages = 0.0, 1.0
    windows = 0.0 if single else read_pages / window_pages / max(1.0, waits)
    if windows > _STREAM:
        return Touched(waits, max(run_pages, _streamed(windows, window_pages)), region, waits)
    by_waits = waits / run_pages if single else waits
    # Of touches at random, some were in a place that had been touched before.
    often = -math.log(1 - density) / density if density else 1.0
    by_places = seen.places * (1 - behind) * often * (waits / (waits - unseen) if unseen < waits else 1.0)
    evicted = min(1.0, seen.evicted_pages / read_pages) if read_pages else 0.0
    runs = max(by_waits, (1 - evicted) * by_places + evicted * by_waits)
    return Touched(runs, run_pages, math.inf if evicted > _EVICTS else region, by_waits)


def _streamed(windows: float, window_pages: int) -> float:
    """The pages of a run that reads so many windows: the reverse of ``_windows``."""
    return max(1 + window_pages / 4, 1 + window_pages / 2 + (windows - 2.5) * window_pages)

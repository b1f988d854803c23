# SPDX-License-Identifier: GPL-2.0-only
"""What a remedy would read of a file, how often a program would wait for that, and how long: arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foliohost.observation import FileSeen
from foliohost.pages import AROUND_PAGES
from foliohost.processes import PAGE_BYTES
from foliohost.runs import Reach, evenly, reaches
from foliohost.shares import FileShare

_STREAM = 1.5
"""Windows read for each wait, above which some of them were read ahead of a stream."""
_EVICTS = 0.2
"""Of the pages read, so many evicted ones mean that memory is short."""
_LEAST_RUN = 1.5
"""Pages of a run, below which it may be chance that blocks follow one another."""
_MOST_BEHIND = 0.9
_BOUNDARY = 4
"""Windows ahead of a stream end at a multiple of so many pages when they begin, since Linux 6.16."""
_CLOSE = 1.5
"""The larger of two bounds by the smaller, up to which a figure between them is told."""

PAUSE_SECONDS = 0.004
"""The rest, in seconds, before a probed request."""


@dataclass(frozen=True)
class DiskCost:
    """What a read takes on a disk, in microseconds: a request, and each of its pages."""

    request_us: float
    """A request that follows another at once."""
    page_us: float
    idle_us: float = 0.0
    """What a request takes more when nothing was read for ``PAUSE_SECONDS``."""

    def request_after(self, pause: float) -> float:
        """Microseconds of a request after ``pause`` seconds without reads.

        The longer disks and processors have nothing to do, the more deeply they sleep, and the later they wake. The
        extra grew about with the pause's square root, for pauses of 0.3, 1 and 4 ms on a virtual disk.
        """
        return self.request_us + self.idle_us * min(1.0, math.sqrt(pause / PAUSE_SECONDS))


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

    def seconds(self, cost: DiskCost, over: float) -> float:
        """How many seconds one program waits for the disk, if it reads all this evenly over ``over`` seconds.

        While the disk reads ahead, the program goes on: it waits only for what its other work does not cover.
        """
        missed = self.pages * min(1.0, self.waits / max(1.0, self.requests))
        ahead = ((self.turns - self.waits) * cost.request_us + (self.pages - missed) * cost.page_us) / 1e6
        idle = max(0.0, over - ahead - (self.waits * cost.request_us + missed * cost.page_us) / 1e6)
        request_us = cost.request_after(idle / max(1.0, self.waits))
        return (self.waits * request_us + missed * cost.page_us) / 1e6 + max(0.0, ahead - idle)


def present_load(read_bytes: int, waits: float, window_pages: int) -> Load:
    """What was read, with a window so large."""
    pages = read_bytes / PAGE_BYTES
    requests = max(waits, pages / max(1, window_pages))
    return Load(pages, waits, requests, waits + (requests - waits) / 2)


@dataclass(frozen=True)
class Shape:
    """How far runs go from the page that is touched first."""

    up: Reach
    down: Reach

    @property
    def pages(self) -> float:
        """Of a run, on average."""
        return max(1.0, 1 + self.up.pages + self.down.pages)

    def load(self, window_pages: int) -> Load:
        """What a run reads with a window; one of 0 or 1 pages reads single pages, as the hint does."""
        if window_pages <= 1:
            return Load(self.pages, self.pages, self.pages, self.pages)
        ahead = [_ahead(pages, window_pages) for pages in range(1, len(self.up.near) + 2)]
        pages, windows = (
            start + sum(share * (more - less) for share, less, more in zip(self.up.near, steps, steps[1:]))
            for start, steps in ((each[0], each) for each in zip(*ahead))
        )
        # Below a miss lie half a window and then the next miss, whose window ends at the page before it.
        step = window_pages // 2 + 1
        misses = max(0.0, sum(self.down.near[step - 1 :: step]) + self.down.far / step)
        pages, windows = max(window_pages, pages + self.up.far), max(1.0, windows + self.up.far / window_pages)
        turns = 1 + misses + max(min(windows - 1, 1), (windows - 1) / 2)
        return Load(pages + misses * step, 1 + misses, windows + misses, turns)


_ALONE = Shape(evenly(1), evenly(1))
"""Of single pages."""


@dataclass(frozen=True)
class Region:
    """A part of what is touched of a file."""

    share: float
    """Of the runs."""
    pages: float
    """Its size. Infinite if pages are evicted: then what was read is read again."""


@dataclass(frozen=True)
class Touched:
    """What a program touches of a file: runs of adjacent pages."""

    runs: float
    shape: Shape
    """Of the runs, about."""
    bounds: tuple[Shape, Shape]
    """What was seen leaves them between these two."""
    regions: Sequence[Region]
    waited: float
    """Of the runs, those that waited with the present window: with a smaller one they do as well."""

    @property
    def run_pages(self) -> float:
        """Of a run, about; 1 where nothing tells of more."""
        return _without_chance(self.shape.pages)

    def load(self, window_pages: int) -> Load:
        """What is read with a window, about; one of 0 or 1 pages reads single pages."""
        return self._load(self.shape, window_pages)

    def loads(self, window_pages: int) -> tuple[Load, Load]:
        """The same for the shortest and for the longest runs that there may be."""
        least, most = self.bounds
        return self._load(least, window_pages), self._load(most, window_pages)

    def _load(self, shape: Shape, window_pages: int) -> Load:
        """Where windows cover much of a region, some of them are in memory already."""
        run = shape.load(window_pages)
        runs = self.runs * max(self._left(run.requests, max(1, window_pages)), self.waited / max(1.0, self.runs))
        return Load(run.pages * runs, run.waits * runs, run.requests * runs, run.turns * runs)

    def _left(self, requests: float, window_pages: int) -> float:
        """Of the windows, those that are not in memory yet when they are asked for."""
        left = 0.0
        for region in self.regions:
            asked = self.runs * region.share * requests * window_pages / region.pages
            left += region.share * (-math.expm1(-asked) / asked if asked else 1.0)
        return left


def close(least: float, most: float) -> bool:
    """Whether a figure between these bounds is worth telling."""
    return most <= _CLOSE * least


def _ahead(run_pages: int, window_pages: int) -> tuple[float, float]:
    """Pages and windows that a run upward reads, on average of the places where it may begin.

    A miss reads the first window around it, whose last quarter is marked. Who touches the first marked page has the
    next window read, which is marked at its first page, and so on (mm/filemap.c, mm/readahead.c).
    """
    boundary = min(_BOUNDARY, window_pages)
    pages = windows = 0
    for first in range(window_pages, window_pages + boundary):
        start = first - window_pages // 2
        end, windows = start + window_pages, windows + 1
        mark = end - max(1, window_pages // 4)
        while mark < first + run_pages:
            mark = end
            end = max((end + window_pages) // boundary * boundary, end + 1)
            windows += 1
        pages += end - start
    return pages / boundary, windows / boundary


def touched(file: FileShare, window_pages: int, waits: float, unseen: float = 0.0) -> Touched:
    """What was touched of a file for which a program waited so often, ``unseen`` times of that after the last look.

    While nothing is evicted, places tell the runs: the present window has spared some of them a wait. Once as much is
    evicted as is read, what spares a wait is memory and no window, and then waits tell the runs.
    """
    seen, read_pages = file.seen, (file.read_bytes or 0) / PAGE_BYTES
    single = window_pages <= 1 or seen.hint == "random"
    behind, shape, bounds = _shapes(seen)
    run_pages = shape.pages
    regions, often = _regions(seen)
    windows = 0.0 if single else read_pages / window_pages / max(1.0, waits)
    if windows > _STREAM:
        # A run that has read so many windows may end anywhere before the mark of the last one.
        streamed = [_streamed(windows + part, window_pages) for part in (-0.5, 0, 0.5)]
        least, shape, most = (Shape(evenly(max(run_pages, pages)), evenly(1)) for pages in streamed)
        return Touched(waits, shape, (least, most), regions, waits)
    by_waits = waits / run_pages if single else waits
    evicted = min(1.0, seen.evicted_pages / read_pages) if read_pages else 0.0
    short = evicted > _EVICTS
    places = seen.places * (waits / (waits - unseen) if unseen < waits else 1.0)
    if seen.runs and not short:
        places = seen.runs.blocks  # a place that looks have found in parts counts once
    by_places = places * (1 - behind) * often
    runs = (1 - evicted) * by_places + evicted * by_waits
    if not seen.runs or short:
        runs = max(runs, by_waits)  # else a run may have waited more than once
    return Touched(runs, shape, bounds, [Region(1.0, math.inf)] if short else regions, min(runs, by_waits))


def _shapes(seen: FileSeen) -> tuple[float, Shape, tuple[Shape, Shape]]:
    """The part of the places that runs went on into, how far these go, and between what bounds."""
    if (runs := seen.runs) and any(runs.up.began):
        least, about, most = map(Shape, *(reaches(way, runs.number) for way in (runs.up, runs.down)))
        if least.pages - 1 < AROUND_PAGES * (runs.up.by_chance.part + runs.down.by_chance.part):
            least = _ALONE  # chance alone makes single pages look as much like runs
        return runs.behind, about, (least, most)
    behind = min(seen.followers / seen.places, _MOST_BEHIND) if seen.places else 0.0
    run_pages = _without_chance(1 + AROUND_PAGES * behind / (1 - behind))
    shape = Shape(evenly(run_pages), evenly(1))
    return (behind if run_pages > 1 else 0.0), shape, (shape, shape)


def _without_chance(run_pages: float) -> float:
    return run_pages if run_pages >= _LEAST_RUN else 1.0


def _regions(seen: FileSeen) -> tuple[Sequence[Region], float]:
    """Where places are, and how often each was touched on average: at random, some more than once."""
    crowds = seen.crowds or ((1, 0.0),)
    blocks = sum(number for number, _ in crowds)
    regions, often = [], 0.0
    for number, met in crowds:
        share, part = number / blocks, -math.expm1(-met)
        again = met / part if met else 1.0
        often += share * again
        pages = seen.one_in * number / part * AROUND_PAGES if met else math.inf
        regions.append((share * again, min(pages, max(1.0, share * seen.size_bytes / PAGE_BYTES))))
    return [Region(share / often, pages) for share, pages in regions], often


def _streamed(windows: float, window_pages: int) -> float:
    """The pages of a run that reads so many windows: the reverse of ``_ahead``, about."""
    return max(1 + window_pages / 4, 1 + window_pages / 2 + (windows - 2.5) * window_pages)

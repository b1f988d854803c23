# SPDX-License-Identifier: GPL-2.0-only
"""How touches of a file go on from block to block, by faults in their order: single pages, or runs.

A fault maps the cached pages of an aligned block, and other touches of that block are hidden then. But the first miss
in a block tells its page, and a run of pages that leaves the block faults again, in the block above or below. A run
of more than ``k`` pages leaves its block upward if it began ``k`` pages below the end. So the pages at which runs
begin, and the share of them that goes on, tell how long runs are. Where no run begins within a few pages of an end, as
with records that never cross it, runs of those few pages look like single pages: there are two bounds then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

from foliohost.pages import AROUND_PAGES, DISTANT, PageBits

_RECENT = 64
"""Blocks that a run may go on from: those entered last. With more of them, more are neighbours by chance."""


@dataclass
class RunShare:
    """So many of so many."""

    number: float = 0
    of: int = 0

    @property
    def part(self) -> float:
        return self.number / max(1, self.of)

    @property
    def error(self) -> float:
        """The standard error of the part, of one at least."""
        return math.sqrt(1 + self.number * max(0.0, 1 - self.part)) / max(1, self.of)


@dataclass(frozen=True)
class RunDirection:
    """What was seen of a file's runs in one direction."""

    began: tuple[int, ...]
    """Runs whose first page is known, by its distance from the end of its block; if the next block was untouched."""
    gone_on: tuple[int, ...]
    """Of these, the ones that went on in the next block."""
    by_chance: RunShare
    """Of runs, those that seem to have gone on, to a block that is too far to be theirs."""
    further: RunShare
    """Of the blocks that runs went on into, and whose next one was untouched, those that they went on from."""
    further_by_chance: RunShare

    @property
    def near(self) -> float:
        """The share of runs that went on into the next block."""
        return sum(self.gone_on) / max(1, sum(self.began)) - self.by_chance.part

    def far(self, errors: int = 0) -> float:
        """Blocks that runs went on into from one that they had not begun in; off by so many standard errors."""
        further, chance = self.further, self.further_by_chance
        error = math.hypot(further.error, chance.error) if further.of else 0.0
        return (further.part - chance.part + errors * error) * further.of


@dataclass(frozen=True)
class RunsSeen:
    """What was seen of a file's runs."""

    up: RunDirection
    down: RunDirection
    number: int
    """Of runs, also those whose first page is not known."""
    blocks: int
    """That were touched."""

    @property
    def behind(self) -> float:
        """Of all blocks, the part that runs went on into."""
        gone_on = sum(way.near * self.number + way.far() for way in (self.up, self.down))
        return max(0.0, gone_on) / max(1.0, max(0.0, gone_on) + self.number)


class _WayCounts:
    """The same while it is counted; blocks at a distance, which no run goes on into, tell what chance brings."""

    def __init__(self, step: int) -> None:
        self.step = step
        self._began, self._gone_on = [0] * AROUND_PAGES, [0] * AROUND_PAGES
        self._further = RunShare()
        self._near_by_chance, self._further_by_chance = RunShare(), RunShare()

    def enter(self, block: int, begun: int | None, came: bool, touched: PageBits) -> None:
        """A run has come to a block, and may go on: it has begun there with a page, or came this way."""
        near, distant = block + self.step not in touched, block + DISTANT * self.step not in touched
        if begun is not None:
            self._began[self._end(begun)] += near
            self._near_by_chance.of += distant
        elif came:
            self._further.of += near
            self._further_by_chance.of += distant

    def go_on(self, begun: int | None, came: bool) -> None:
        """One goes on from a block that it entered so."""
        if begun is not None:
            self._gone_on[self._end(begun)] += 1
        elif came:
            self._further.number += 1

    def go_on_by_chance(self, begun: int | None, came: bool) -> None:
        """The same of a distant block."""
        if begun is not None:
            self._near_by_chance.number += 1
        elif came:
            self._further_by_chance.number += 1

    def _end(self, place: int) -> int:
        return AROUND_PAGES - 1 - place if self.step > 0 else place

    def seen(self) -> RunDirection:
        shares = self._near_by_chance, self._further, self._further_by_chance
        return RunDirection(tuple(self._began), tuple(self._gone_on), *map(copy, shares))


class RunCounts:
    """The runs of one file, of faults that are given in their order. Memory grows with the file, by 2 MiB for 1 TiB."""

    def __init__(self) -> None:
        self._skew = 0
        self._touched = PageBits()
        """Blocks."""
        self._recent: dict[int, tuple[int | None, int]] = {}
        """By block: the page in it at which a run began, if that is known, and which way a run came into it, if any."""
        self._ways = _WayCounts(1), _WayCounts(-1)
        self._number = 0

    def map(self, first: int, last: int) -> None:
        """A fault has mapped what is cached from one page to another, and does not tell which was touched."""
        if last - first == AROUND_PAGES - 1:
            self._skew = -first % AROUND_PAGES
        block = (first + self._skew) // AROUND_PAGES
        if block not in self._touched:
            self._enter(block, None)

    def miss(self, page: int) -> None:
        """A fault has not found its page mapped around."""
        block, place = divmod(page + self._skew, AROUND_PAGES)
        if block not in self._touched:
            self._enter(block, place)

    def _enter(self, block: int, place: int | None) -> None:
        recent, came = self._recent, 0
        from_ways = [way for way in self._ways if block - way.step in recent]
        if len(from_ways) == 1:
            (way,) = from_ways
            begun, before = recent[block - way.step]
            way.go_on(begun, before == way.step)
            came, place = way.step, None
        elif not from_ways:
            self._number += 1
        for way in self._ways:
            if way.step != came:  # else it may be the same run
                begun, before = recent.get(block - DISTANT * way.step, (None, 0))
                way.go_on_by_chance(begun, before == way.step)
        self._touched.add(block, 1)
        for way in self._ways:
            way.enter(block, place, came == way.step, self._touched)
        recent[block] = place, came
        if len(recent) > _RECENT:
            del recent[next(iter(recent))]

    def seen(self) -> RunsSeen:
        up, down = self._ways
        return RunsSeen(up.seen(), down.seen(), self._number, len(self._touched))


@dataclass(frozen=True)
class Reach:
    """How far runs go from where they begin, in one direction."""

    near: tuple[float, ...] = ()
    """The share of runs that have more than one page, more than two, and so on up to those of a block."""
    far: float = 0.0
    """Pages of a run behind these, on average."""

    @property
    def pages(self) -> float:
        """Of a run on average, without the first."""
        return sum(self.near) + self.far


def evenly(pages: float) -> Reach:
    """Runs that have all so many pages."""
    behind = max(0.0, pages - 1)
    near = tuple(min(1.0, max(0.0, behind - page)) for page in range(AROUND_PAGES))
    return Reach(near, max(0.0, behind - AROUND_PAGES))


def reaches(way: RunDirection, runs: int) -> Iterator[Reach]:
    """How far so many runs go one way: at least, about, and at most."""
    for errors, near in zip((-1, 0, 1), _shares(way)):
        yield Reach(near, AROUND_PAGES * way.far(errors) / max(1, runs))


def _shares(way: RunDirection) -> Iterator[tuple[float, ...]]:
    """Of runs that began at each distance from the end, the part that is longer than that: at least, about, at most.

    That part only falls with the distance, so what is seen at some distances bounds it at others, and bounds are off
    by a standard error. A part may be below zero where chance brings fewer neighbours than elsewhere: then the sum is
    right.
    """
    chance = way.by_chance

    def part(first: int, last: int, errors: int = 0) -> float:
        seen = RunShare(sum(way.gone_on[first : last + 1]), sum(way.began[first : last + 1]))
        if not seen.of:
            return max(0.0, errors)
        return min(1.0, seen.part - chance.part + errors * math.hypot(seen.error, chance.error))

    distances = range(len(way.began))
    yield tuple(max(0.0, *(part(at, last, -1) for last in distances[at:])) for at in distances)
    yield tuple(
        max(min(part(first, last) for first in distances[: at + 1]) for last in distances[at:]) for at in distances
    )
    yield tuple(max(0.0, min(part(first, at, 1) for first in distances[: at + 1])) for at in distances)

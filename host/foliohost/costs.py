# SPDX-License-Identifier: GPL-2.0-only
"""What a request and a page cost, from the times of reads of several sizes: arithmetic alone, without a disk.

A read of n pages takes ``request_us + n * page_us``. Times are in microseconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from foliohost.processes import PAGE_BYTES

Times = Mapping[int, Sequence[float]]
"""Of reads of so many pages: a median of each round, in the order of the rounds."""
MOST_DISAGREEMENT = 0.2
"""Of the halves of a run, above which the result is uncertain."""
MOST_KB = 65536
"""The largest request_kb that kernel and module take."""

_DRAWS = 200
_OUTSIDE = 0.05
_LEAST_PAGE_US = 0.01
"""A page for which less was found is lost in the noise: no disk reads 400 GB/s."""


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    """Of a range that has the halves of the run, and nine of ten runs that are drawn anew from its rounds."""
    high: float


@dataclass(frozen=True)
class Cost:
    request_us: Estimate
    """What a read of nothing would take."""
    page_us: Estimate
    """What each page adds."""
    request_kb: Estimate
    """The KiB that are read in what a request costs."""
    disagreement: float
    """Of the halves of the run: 0.2 if one of the figures above is 20 % larger in one of them."""

    @property
    def certain(self) -> bool:
        return self.disagreement <= MOST_DISAGREEMENT

    @property
    def recommended_kb(self) -> int:
        """What to tell the kernel, in KiB: two digits, rounded up.

        Too high costs less than too low, by which windows would be cut to single pages. So an uncertain figure is
        taken from the upper end of its range.
        """
        found = self.request_kb.value if self.certain else self.request_kb.high
        step: int = 10 ** max(0, math.floor(math.log10(max(found, 1))) - 1)
        return min(max(math.ceil(found / step) * step, 1), MOST_KB)


def fit(times: Mapping[int, float]) -> tuple[float, float]:
    """``request_us`` and ``page_us`` of the line through the times of at least two sizes, in pages.

    The slope is Theil and Sen's: the median of the slopes of all pairs of sizes.
    """
    slopes = [(times[large] - times[small]) / (large - small) for small in times for large in times if small < large]
    page = max(median(slopes), _LEAST_PAGE_US)
    return max(median(taken - page * pages for pages, taken in times.items()), 0.0), page


def cost(times: Times) -> Cost:
    """What the times come to; each size needs those of two rounds."""
    numbers = random.Random(1)
    value = _figures(times)
    halves = [_figures({pages: part(each) for pages, each in times.items()}) for part in (_first_half, _second_half)]
    drawn = [
        _figures({pages: numbers.choices(each, k=len(each)) for pages, each in times.items()}) for _ in range(_DRAWS)
    ]
    request, page, kb = (
        _estimate(value[place], [half[place] for half in halves], [draw[place] for draw in drawn]) for place in range(3)
    )
    return Cost(request, page, kb, max(_apart(halves[0][place], halves[1][place]) for place in range(3)))


def _apart(one: float, other: float) -> float:
    return max(one, other) / max(min(one, other), 1e-9) - 1


def _figures(times: Times) -> tuple[float, float, float]:
    request, page = fit({pages: median(each) for pages, each in times.items()})
    return request, page, min(request / page * PAGE_BYTES / 1024, MOST_KB)


def _estimate(value: float, halves: Iterable[float], drawn: Iterable[float]) -> Estimate:
    order = sorted(drawn)
    outside = int(len(order) * _OUTSIDE)
    return Estimate(value, min(order[outside], value, *halves), max(order[-1 - outside], value, *halves))


def _first_half(each: Sequence[float]) -> Sequence[float]:
    return each[: len(each) // 2]


def _second_half(each: Sequence[float]) -> Sequence[float]:
    return each[len(each) // 2 :]

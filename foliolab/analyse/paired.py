# SPDX-License-Identifier: GPL-2.0-only
"""What paired figures can say: by how much boots of two kernels differ, and whether chance does that.

Boots are the units, and a boot of one kernel is paired with the one of the other that had the same seed. If kernels are
alike, either could have had either figure: each difference is as likely as its opposite, however figures are
distributed. Wilcoxon's signed-rank test takes no more than that. It is exact here for any number of boots, and with
ties, which counts often have: SciPy's own goes over to the normal approximation at 14 boots with ties, too soon for
differences that are rare. The estimate is that of Hodges and Lehmann, the median of the means of any two differences,
and the interval has all shifts that the test would not reject, and more where pairs do not differ: the test leaves
these out. These two also take it that differences lie evenly around the shift. The sign test does not, but at eight
boots it has no narrower an interval than at six, and it cannot bear one of eight boots that says the opposite.

Five boots have no interval of 95 %: chance makes all of them go the same way in 1 of 16 cases, six in 1 of 32.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import ceil, log2
from statistics import median

CHANCE = 0.05
"""How often chance alone may make a difference that counts: intervals are of 95 %."""


@dataclass(frozen=True)
class Shift:
    """By how much the second of each pair is more than the first, in their unit."""

    estimate: float
    interval: tuple[float, float] | None
    """Of 95 % by itself; None if there are too few pairs."""
    p: float
    """How often chance alone would go as far to either side, by itself."""


def shift(differences: Sequence[float]) -> Shift:
    """What the differences of at least one pair come to."""
    means = sorted((one + other) / 2 for one, other in combinations_with_replacement(differences, 2))
    outside = _outside(len(differences))
    interval = None if outside is None else (means[outside], means[-1 - outside])
    return Shift(median(means), interval, p_value(differences))


def p_value(differences: Sequence[float]) -> float:
    """How often chance alone would make differences go as far to either side. Those of 0 say nothing."""
    from scipy.stats import rankdata  # takes longer to load than most commands run

    some = [each for each in differences if each]
    ranks = [round(2 * rank) for rank in rankdata([abs(each) for each in some])]  # those of ties are halves
    below = sum(rank for rank, each in zip(ranks, some, strict=True) if each < 0)
    ways = _ways(ranks)
    return float(min(2 * sum(ways[: min(below, len(ways) - 1 - below) + 1]) / 2 ** len(some), 1.0))


def corrected(p_values: Sequence[float]) -> list[float]:
    """P-values of many comparisons, by Benjamini and Hochberg: of those up to x, at most the share x is due to chance.

    Who reads a list of what gets worse wants most of it to be true. Holm's method wants all of it to be; for one that
    differs among many that do not, both ask the same. It takes comparisons that do not contradict each other, as
    those of one boot hardly do; the baseline that is measured twice shows what comes of it.
    """
    from scipy.stats import false_discovery_control

    return [float(each) for each in false_discovery_control(p_values)] if p_values else []


def boots_needed(comparisons: int) -> int:
    """How many pairs can show a difference in one of so many comparisons, after correction."""
    return ceil(1 + log2(max(comparisons, 1) / CHANCE))


def _outside(pairs: int) -> int | None:
    """How many means of two lie beyond either end of the interval; None if it would have no end."""
    ways = _ways(range(1, pairs + 1))
    allowed, outside = CHANCE / 2 * 2**pairs, 0
    while (allowed := allowed - ways[outside]) >= 0:
        outside += 1
    return outside - 1 if outside else None


def _ways(ranks: Iterable[int]) -> list[int]:
    """In how many ways signs can fall so that the negative ones' ranks come to 0, 1, 2 ... in all."""
    ways = [1]
    for rank in ranks:
        ways = [a + b for a, b in zip(ways + [0] * rank, [0] * rank + ways, strict=True)]
    return ways

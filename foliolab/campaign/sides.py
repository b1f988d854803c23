# SPDX-License-Identifier: GPL-2.0-only
"""Whether a kernel is like a good one or like a bad one, by figures that vary from boot to boot.

Boots vote. Of repetitions of the same number, which share a seed, is the figure nearer to that of the good kernel or
of the bad one? Who leads by ``LEAD`` votes has won. If votes were independent and right four times of five, one kernel
in 257 would be judged wrongly. Where chance moves figures by far less than the two kernels differ, one boot will do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from foliolab.paired import p_value

LEAD = 4
"""Votes by which a side has to lead."""

_APART = 4
"""One boot will do if there is so many times as much room between two kernels' figures as either takes."""

_CHANCE = 1 / 40
"""How likely chance alone may be to make boots of two kernels differ so much in the same direction."""


@dataclass(frozen=True)
class Ends:
    """Figures of a good and of a bad kernel, of the same repetitions in order."""

    good: tuple[float, ...]
    bad: tuple[float, ...]
    negligible: float
    """A difference below this is none."""

    @property
    def between(self) -> float:
        """The room between their figures; negative if these overlap."""
        return max(min(self.bad) - max(self.good), min(self.good) - max(self.bad))

    @property
    def clear(self) -> bool:
        """Whether the figure of any boot tells of which kernel it is."""
        taken = max(max(self.good) - min(self.good), max(self.bad) - min(self.bad))
        return self.between > max(_APART * taken, self.negligible)

    @property
    def differ(self) -> bool:
        """Whether boots differ so much in the same direction that chance seldom does that."""
        differences = [there - here for here, there in zip(self.good, self.bad, strict=True)]
        return p_value([each for each in differences if abs(each) > self.negligible]) <= _CHANCE

    def plainly(self, value: float) -> int:
        """1 if a figure is plainly one of the bad kernel, -1 if of the good one, else 0. They have to be clear."""
        room = self.between / 4
        return _within(value, self.bad, room) - _within(value, self.good, room)

    def lead_of_bad(self, values: Sequence[float]) -> int:
        """Votes for the bad kernel less those for the good one, of repetitions from the first on."""
        lead = 0
        for value, good, bad in zip(values, self.good, self.bad, strict=False):
            lead += (abs(value - good) > abs(value - bad)) - (abs(value - good) < abs(value - bad))
            if abs(lead) == LEAD:
                break
        return lead


def _within(value: float, figures: Sequence[float], room: float) -> bool:
    return min(figures) - room <= value <= max(figures) + room

# SPDX-License-Identifier: GPL-2.0-only
"""Whether a kernel is like a good one or like a bad one, by figures that vary from boot to boot.

Every boot has a vote: of repetitions of the same number, which share a seed, is the figure nearer to that of the good
kernel or of the bad one? Who leads by ``LEAD`` votes has won. If a boot is right four times of five, one kernel
in 65 is judged wrongly. Where chance moves figures by far less than the two kernels differ, one vote will do.
"""

from collections.abc import Sequence

LEAD = 3
"""Votes by which a side has to lead."""


def lead_of_bad(values: Sequence[float], good: Sequence[float], bad: Sequence[float]) -> int:
    """Votes for the bad kernel less those for the good one. All have the figures of the same repetitions, in order."""
    nearer = (abs(value - one) - abs(value - other) for value, one, other in zip(values, good, bad, strict=True))
    return sum((distance > 0) - (distance < 0) for distance in nearer)


def lead_of_more(good: Sequence[float], bad: Sequence[float]) -> int:
    """Votes for a bad kernel that has the higher figures, less those for one that has the lower ones."""
    return sum((there > here) - (there < here) for here, there in zip(good, bad, strict=True))


def lead_needed(good: Sequence[float], bad: Sequence[float]) -> int:
    """Votes by which a side has to lead: one, if between the two kernels there is twice the room that either takes."""
    between = max(min(bad) - max(good), min(good) - max(bad))
    taken = max(max(good) - min(good), max(bad) - min(bad))
    return 1 if len(good) >= LEAD and between > 2 * taken else LEAD

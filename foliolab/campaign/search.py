# SPDX-License-Identifier: GPL-2.0-only
"""Which commit changed a figure: halving what lies between a good and a bad one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from foliolab.errors import (
    BuildError,
    ConfigError,
    HookError,
    HostLost,
    LabError,
    NoResult,
    SeriesError,
    SourceError,
    Undecided,
    UsageError,
)
from foliolab.kernel.git import Repository
from foliolab.paired import p_value
from foliolab.vm.outcome import GuestFailure

MOST_BOOTS = 10
"""Of a commit, unless the user says otherwise."""
FIRST_BOOTS = 3
"""Of the good and the bad one. One boot of another commit will do if these are clearly apart."""

FiguresOf = Callable[[str, int], Sequence[float]]
"""Of so many repetitions of a commit; a LabError if it cannot be built, booted or measured."""

_ITS_FAULT = (BuildError, ConfigError, HookError, SeriesError, SourceError, NoResult, GuestFailure)
"""What makes a commit one that cannot be judged, once the ends could be. HostLost, one of these, is not its fault."""

_GOLDEN = 0.618
"""Where to go on beside commits that cannot be judged: multiples of this are never close together, modulo 1."""

LEAD = 4
"""Votes by which a side has to lead."""

_APART = 4
"""One boot will do if there is so many times as much room between two kernels' figures as either takes."""

_CHANCE = 1 / 40
"""How likely chance alone may be to make boots of two kernels differ so much in the same direction."""


@dataclass(frozen=True)
class Ends:
    """Figures of a good and of a bad kernel, of the same repetitions in order, and which of the two another is like.

    Boots vote. Of repetitions of the same number, which share a seed, is the figure nearer to that of the good kernel
    or of the bad one? Who leads by ``LEAD`` votes has won. If votes were independent and right four times of five, one
    kernel in 257 would be judged wrongly. Where chance moves figures by far less than the two kernels differ, one boot
    will do.
    """

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


class Side(StrEnum):
    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"
    """It cannot be measured, or its boots do not agree."""


@dataclass(frozen=True)
class JudgedCommit:
    """A commit, and where it belongs."""

    commit: str
    side: Side
    values: tuple[float, ...] = ()
    """Of its boots, in order; none if it cannot be measured."""
    why: str = ""
    """It was skipped."""
    left: int = 0
    """Commits that may have been the first bad one before this step."""


class Search:
    """Halve the commits between a good and a bad one until one is left that made the difference."""

    def __init__(
        self,
        repository: Repository,
        good: str,
        bad: str,
        figures: FiguresOf,
        most: int = MOST_BOOTS,
        negligible: float = 0,
    ) -> None:
        """``good`` and ``bad`` are commits; UsageError if there is nothing between them."""
        if good == bad:
            raise UsageError(f"The good and the bad commit are the same, {good[:12]}.")
        if not repository.is_ancestor(good, bad):
            shallow = " The clone is shallow: its older history is not there." if repository.is_shallow else ""
            raise UsageError(f"{good[:12]}, the good commit, is not an ancestor of {bad[:12]}, the bad one.{shallow}")
        self._repository = repository
        self._good, self._bad = good, bad
        self._figures = figures
        self._most = most
        self._negligible = negligible
        self._votes: Ends | None = None
        """The ends with as many boots as any commit may have, once these are needed."""
        self.first_bad: tuple[str, ...] = ()
        """Once all steps are taken: the commit, or, newest first, those that it is one of."""

    def steps(self) -> Iterator[JudgedCommit]:
        """Judge the ends, then commits between them. Undecided if the ends cannot be told apart."""
        ends = self._compare_ends()
        yield JudgedCommit(self._good, Side.GOOD, ends.good)
        yield JudgedCommit(self._bad, Side.BAD, ends.bad)
        bad, goods, skipped, in_a_row = self._bad, [self._good], set[str](), 0
        while True:
            candidates = self._repository.halves(bad, goods)
            left = [commit for commit in candidates if commit != bad and commit not in skipped]
            if not left:
                self.first_bad = tuple(sorted(candidates, key=self._repository.history(bad, goods).index))
                return
            away = in_a_row * _GOLDEN % 1
            step = self._judge(left[int(len(left) * away)], ends, len(candidates))
            yield step
            in_a_row = in_a_row + 1 if step.side is Side.SKIPPED else 0
            if step.side is Side.BAD:
                bad = step.commit
            elif step.side is Side.GOOD:
                goods.append(step.commit)
            else:
                skipped.add(step.commit)

    def _compare_ends(self) -> Ends:
        for boots in (FIRST_BOOTS, self._most):
            ends = self._ends(boots)
            if ends.clear or ends.differ:
                return ends
        raise Undecided(
            f"The good and the bad kernel cannot be told apart in {self._most} boots of each:"
            f" {_span(ends.good)} and {_span(ends.bad)}."
        )

    def _judge(self, commit: str, ends: Ends, left: int) -> JudgedCommit:
        try:
            if ends.clear:
                values = tuple(self._figures(commit, 1))
                if plain := ends.plainly(values[0]):
                    return JudgedCommit(commit, Side.BAD if plain > 0 else Side.GOOD, values, left=left)
            self._votes = votes = self._votes or self._with_most_boots(ends)
            for boots in (LEAD, self._most):
                values = tuple(self._figures(commit, boots))
                if abs(lead := votes.lead_of_bad(values)) == LEAD:
                    return JudgedCommit(commit, Side.BAD if lead > 0 else Side.GOOD, values, left=left)
            return JudgedCommit(commit, Side.SKIPPED, values, "its boots do not agree", left)
        except HostLost:
            raise
        except _ITS_FAULT as error:
            return JudgedCommit(commit, Side.SKIPPED, (), str(error), left)

    def _with_most_boots(self, ends: Ends) -> Ends:
        """All at once: each question may have to compile what differs."""
        if len(ends.good) == self._most:
            return ends
        try:
            return self._ends(self._most)
        except LabError as error:
            raise Undecided(f"An end of the search cannot be booted as often as the others: {error}") from error

    def _ends(self, boots: int) -> Ends:
        good, bad = (tuple(self._figures(end, boots)) for end in (self._good, self._bad))
        return Ends(good, bad, self._negligible)


def _span(values: Sequence[float]) -> str:
    return f"{min(values):g} to {max(values):g}"

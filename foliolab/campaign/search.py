# SPDX-License-Identifier: GPL-2.0-only
"""Which commit changed a figure: halving what lies between a good and a bad one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from foliolab.analyse.sides import LEAD, lead_needed, lead_of_bad, lead_of_more
from foliolab.errors import Undecided, UsageError
from foliolab.kernel.git import Repository

MOST_BOOTS = 10
"""Of a commit, unless the user says otherwise."""

Figures = Callable[[str, int], Sequence[float] | None]
"""Of so many repetitions of a commit; None if it cannot be built, booted or measured."""


class Side(StrEnum):
    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"
    """It cannot be measured, or boots do not agree."""


@dataclass(frozen=True)
class Step:
    """A commit, and where it belongs."""

    commit: str
    side: Side
    values: tuple[float, ...]
    """Of its boots, in order; none if it cannot be measured."""


class Search:
    """Halve the commits between a good and a bad one until one is left that made the difference."""

    def __init__(self, repository: Repository, good: str, bad: str, figures: Figures, most: int = MOST_BOOTS) -> None:
        """``good`` and ``bad`` are commits; UsageError if the first is no ancestor of the second."""
        if not repository.is_ancestor(good, bad) or good == bad:
            raise UsageError(f"{good[:12]} is not an ancestor of {bad[:12]}: there are no commits between the two.")
        self._repository = repository
        self._ends = good, bad
        self._figures = figures
        self._most = most
        self._known: dict[str, tuple[float, ...]] = {}
        """Of the ends: to ask again what is known would bring the tree to their commits, and back."""
        self.first_bad: tuple[str, ...] = ()
        """Once all steps are taken: the commit, or those that it is one of, because others cannot be judged."""

    def steps(self) -> Iterator[Step]:
        """Judge the ends, then commits between them. Undecided if the ends cannot be told apart or measured."""
        good, bad = self._ends
        yield from self._judge_ends()
        goods, skipped = [good], set[str]()
        while True:
            candidates = self._repository.halves(bad, goods)
            left = [commit for commit in candidates if commit not in skipped | {bad}]
            if not left:
                self.first_bad = (bad, *(commit for commit in candidates if commit != bad))
                return
            step = self._judge(left[0])
            yield step
            if step.side is Side.BAD:
                bad = step.commit
            elif step.side is Side.GOOD:
                goods.append(step.commit)
            else:
                skipped.add(step.commit)

    def _judge_ends(self) -> Iterator[Step]:
        for boots in range(LEAD, self._most + 1):
            good, bad = (self._values(end, boots) for end in self._ends)
            if abs(lead_of_more(good, bad)) >= LEAD:
                yield Step(self._ends[0], Side.GOOD, good)
                yield Step(self._ends[1], Side.BAD, bad)
                return
        raise Undecided(f"The good and the bad kernel cannot be told apart in {self._most} boots of each.")

    def _judge(self, commit: str) -> Step:
        values: tuple[float, ...] = ()
        for boots in range(1, self._most + 1):
            found = self._figures(commit, boots)
            if found is None:
                return Step(commit, Side.SKIPPED, ())
            values = tuple(found)
            good, bad = (self._values(end, boots) for end in self._ends)
            lead = lead_of_bad(values, good, bad)
            if abs(lead) >= lead_needed(*(self._known[end] for end in self._ends)):
                return Step(commit, Side.BAD if lead > 0 else Side.GOOD, values)
        return Step(commit, Side.SKIPPED, values)

    def _values(self, end: str, boots: int) -> tuple[float, ...]:
        if len(self._known.get(end, ())) < boots:
            found = self._figures(end, boots)
            if found is None:
                raise Undecided(f"{end[:12]}, an end of the search, cannot be measured.")
            self._known[end] = tuple(found)
        return self._known[end][:boots]

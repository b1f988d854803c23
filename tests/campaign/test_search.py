# SPDX-License-Identifier: GPL-2.0-only
"""Halving the commits of real repositories, with figures that take no kernel."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from foliolab.campaign.search import Figures, Search, Side
from foliolab.errors import Undecided, UsageError
from foliolab.kernel.git import Repository
from tests.kernel.test_git import git

Made = tuple[Repository, list[str]]


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Made]:
    """Makes a repository with so many commits, the oldest first."""
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "linux"

    def make(commits: int) -> Made:
        place.mkdir()
        git(place, "init", "--quiet")
        for number in range(commits):
            git(place, "commit", "--quiet", "--allow-empty", f"--message=commit {number}")
        return Repository.at(place), git(place, "rev-list", "--reverse", "HEAD").split()

    return make


def changing(commits: Sequence[str], at: int, noise: float = 0, broken: Sequence[int] = ()) -> Figures:
    """A figure that goes from 100 to 200 with the commit ``at``, and varies by chance."""

    def figures(commit: str, boots: int) -> list[float] | None:
        number = commits.index(commit)
        if number in broken:
            return None
        chance = random.Random(commit)
        return [(200 if number >= at else 100) + noise * chance.uniform(-1, 1) for _ in range(boots)]

    return figures


@pytest.mark.parametrize("at", [1, 2, 16, 17, 31, 32])
def test_a_commit_among_32_takes_five_steps(history: Callable[[int], Made], at: int) -> None:
    repository, commits = history(33)
    search = Search(repository, commits[0], commits[-1], changing(commits, at))
    good, bad, *steps = search.steps()
    assert (good.commit, good.side, bad.commit, bad.side) == (commits[0], Side.GOOD, commits[-1], Side.BAD)
    assert search.first_bad == (commits[at],)
    assert len(steps) <= 5 and all(len(step.values) == 1 for step in steps)
    assert [step.side for step in steps] == [
        Side.BAD if commits.index(step.commit) >= at else Side.GOOD for step in steps
    ]
    assert repository.subject(search.first_bad[0]) == f"commit {at}"


def test_ends_are_measured_once(history: Callable[[int], Made]) -> None:
    """In a real tree, each question may compile what differs between two commits."""
    repository, commits = history(33)
    figures, asked = changing(commits, 20), []

    def noted(commit: str, boots: int) -> Sequence[float] | None:
        asked.append((commit, boots))
        return figures(commit, boots)

    assert list(Search(repository, commits[0], commits[-1], noted).steps())
    assert [question for question in asked if question[0] in (commits[0], commits[-1])] == [
        (commits[0], 3),
        (commits[-1], 3),
    ]
    assert len(asked) == len(set(asked)) <= 7


def test_boots_that_vary_are_repeated_until_they_agree(history: Callable[[int], Made]) -> None:
    repository, commits = history(33)
    search = Search(repository, commits[0], commits[-1], changing(commits, 20, noise=60), most=30)
    steps = list(search.steps())
    assert search.first_bad == (commits[20],)
    assert max(len(step.values) for step in steps) > 3


def test_what_cannot_be_measured_is_passed_over(history: Callable[[int], Made]) -> None:
    repository, commits = history(10)
    search = Search(repository, commits[0], commits[-1], changing(commits, 7, broken=[4, 5]))
    assert {step.commit for step in search.steps() if step.side is Side.SKIPPED} <= set(commits[4:6])
    assert search.first_bad == (commits[7],)


def test_all_that_it_may_be_are_told(history: Callable[[int], Made]) -> None:
    repository, commits = history(10)
    search = Search(repository, commits[0], commits[-1], changing(commits, 5, broken=[4, 5]))
    skipped = {step.commit for step in search.steps() if step.side is Side.SKIPPED}
    assert skipped == set(commits[4:6])
    assert search.first_bad[0] == commits[6] and set(search.first_bad) == set(commits[4:7])


def test_a_commit_whose_boots_do_not_agree_is_passed_over(history: Callable[[int], Made]) -> None:
    repository, commits = history(3)
    figures = changing(commits, 2)
    between = {commits[1]: [150.0] * 10}
    search = Search(
        repository,
        commits[0],
        commits[-1],
        lambda commit, boots: between.get(commit, figures(commit, boots) or [])[:boots],
    )
    *_, step = search.steps()
    assert step.side is Side.SKIPPED and list(step.values) == between[commits[1]]
    assert search.first_bad == (commits[2], commits[1])


def test_a_merged_branch_is_searched_as_well(history: Callable[[int], Made], tmp_path: Path) -> None:
    repository, commits = history(3)
    place = tmp_path / "linux"
    git(place, "checkout", "--quiet", "-b", "side", commits[1])
    git(place, "commit", "--quiet", "--allow-empty", "--message=of the branch")
    culprit = git(place, "rev-parse", "HEAD").strip()
    git(place, "checkout", "--quiet", "-")
    git(place, "merge", "--quiet", "--no-ff", "--message=merge", "side")
    merge = git(place, "rev-parse", "HEAD").strip()
    after = {culprit, merge}
    search = Search(repository, commits[0], merge, lambda commit, boots: [2.0 if commit in after else 1.0] * boots)
    assert list(search.steps())
    assert search.first_bad == (culprit,)


def test_ends_that_are_alike_or_cannot_be_measured(history: Callable[[int], Made]) -> None:
    repository, commits = history(4)
    with pytest.raises(Undecided, match="cannot be told apart in 10 boots"):
        list(Search(repository, commits[0], commits[-1], changing(commits, 9)).steps())
    with pytest.raises(Undecided, match=rf"{commits[3][:12]}, an end"):
        list(Search(repository, commits[0], commits[-1], changing(commits, 2, broken=[3])).steps())


@pytest.mark.parametrize(("good", "bad"), [(3, 0), (1, 1)])
def test_a_good_commit_has_to_be_older(history: Callable[[int], Made], good: int, bad: int) -> None:
    repository, commits = history(4)
    with pytest.raises(UsageError, match="is not an ancestor of"):
        Search(repository, commits[good], commits[bad], changing(commits, 2))

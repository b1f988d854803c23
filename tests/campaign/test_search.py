# SPDX-License-Identifier: GPL-2.0-only
"""Halving the commits of real repositories, with figures that take no kernel."""

import random
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest

from foliolab.campaign.search import FiguresOf, Search, Side
from foliolab.errors import BuildError, HostLost, Undecided, UnknownKernel, UsageError
from foliolab.kernel.git import Repository
from foliolab.vm.outcome import Outcome, OutcomeKind, failure
from tests.git import git

Made = tuple[Repository, list[str]]


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Made]:
    """Makes a repository with so many commits, the oldest first."""
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    # Commits that halve as well as each other come in the order of their hashes, which go by their dates.
    for whose in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{whose}_DATE", "2026-01-01T00:00:00Z")
    place = tmp_path / "linux"

    def make(commits: int) -> Made:
        place.mkdir()
        git(place, "init", "--quiet")
        for number in range(commits):
            git(place, "commit", "--quiet", "--allow-empty", f"--message=commit {number}")
        return Repository.at(place), git(place, "rev-list", "--reverse", "HEAD").split()

    return make


def changing(commits: Sequence[str], at: int, noise: float = 0, broken: Collection[int] = ()) -> FiguresOf:
    """A figure that goes from 100 to 200 with the commit ``at``, and varies by chance."""

    def figures(commit: str, boots: int) -> list[float]:
        number = commits.index(commit)
        if number in broken:
            raise BuildError("It does not build.")
        chance = random.Random(number)
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

    def noted(commit: str, boots: int) -> Sequence[float]:
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
    search = Search(repository, commits[0], commits[-1], changing(commits, 20, noise=60), most=20)
    good, bad, *steps = search.steps()
    assert search.first_bad == (commits[20],)
    assert (len(good.values), len(bad.values)) == (20, 20)
    assert {len(step.values) for step in steps} <= {4, 20}


def test_what_cannot_be_measured_is_passed_over(history: Callable[[int], Made]) -> None:
    repository, commits = history(10)
    search = Search(repository, commits[0], commits[-1], changing(commits, 7, broken=[4, 5]))
    skipped = [step for step in search.steps() if step.side is Side.SKIPPED]
    assert skipped and {step.commit for step in skipped} <= set(commits[4:6])
    assert {step.why for step in skipped} == {"It does not build."}
    assert search.first_bad == (commits[7],)


def test_a_long_broken_stretch_is_left_soon(history: Callable[[int], Made]) -> None:
    repository, commits = history(101)
    search = Search(repository, commits[0], commits[-1], changing(commits, 85, broken=range(30, 70)))
    assert len(list(search.steps())) < 20
    assert search.first_bad == (commits[85],)


def test_all_that_it_may_be_are_told(history: Callable[[int], Made]) -> None:
    repository, commits = history(10)
    search = Search(repository, commits[0], commits[-1], changing(commits, 5, broken=[4, 5]))
    skipped = {step.commit for step in search.steps() if step.side is Side.SKIPPED}
    assert skipped == set(commits[4:6])
    assert search.first_bad == (commits[6], commits[5], commits[4])


def test_what_is_the_host_s_fault_ends_the_search(history: Callable[[int], Made]) -> None:
    repository, commits = history(3)
    figures = changing(commits, 2)

    def lost(commit: str, boots: int) -> Sequence[float]:
        if commit == commits[1]:
            raise failure(Outcome(OutcomeKind.LOST_HOST, "QEMU went away."))
        return figures(commit, boots)

    with pytest.raises(HostLost, match="went away"):
        list(Search(repository, commits[0], commits[-1], lost).steps())


def test_a_commit_whose_boots_do_not_agree_is_passed_over(history: Callable[[int], Made]) -> None:
    repository, commits = history(3)
    figures = changing(commits, 2)
    between = {commits[1]: [150.0] * 10}
    search = Search(
        repository,
        commits[0],
        commits[-1],
        lambda commit, boots: between.get(commit, list(figures(commit, boots)))[:boots],
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


def test_ends_that_are_alike(history: Callable[[int], Made]) -> None:
    repository, commits = history(4)
    with pytest.raises(Undecided, match="told apart in 10 boots of each: 100 to 100 and 100 to 100"):
        list(Search(repository, commits[0], commits[-1], changing(commits, 9)).steps())
    with pytest.raises(Undecided, match="told apart in 10 boots"):
        list(Search(repository, commits[0], commits[-1], changing(commits, 9, noise=50)).steps())
    with pytest.raises(Undecided, match="told apart in 10 boots"):
        list(Search(repository, commits[0], commits[-1], changing(commits, 2), negligible=100).steps())


def test_an_end_that_does_not_build_says_why(history: Callable[[int], Made]) -> None:
    repository, commits = history(4)
    with pytest.raises(BuildError, match="does not build"):
        list(Search(repository, commits[0], commits[-1], changing(commits, 2, broken=[3])).steps())


@pytest.mark.parametrize(("good", "bad", "says"), [(3, 0, "is not an ancestor of"), (1, 1, "are the same")])
def test_a_good_commit_has_to_be_older(history: Callable[[int], Made], good: int, bad: int, says: str) -> None:
    repository, commits = history(4)
    with pytest.raises(UsageError, match=says):
        Search(repository, commits[good], commits[bad], changing(commits, 2))


def test_a_shallow_clone_says_that_it_is_one(history: Callable[[int], Made], tmp_path: Path) -> None:
    _, commits = history(4)
    shallow = tmp_path / "shallow"
    git(tmp_path / "linux", "config", "uploadpack.allowAnySHA1InWant", "true")
    git(tmp_path / "linux", "clone", "--quiet", "--depth=1", f"file://{tmp_path / 'linux'}", str(shallow))
    git(shallow, "fetch", "--quiet", "--depth=1", "origin", commits[1])
    with pytest.raises(UsageError, match="The clone is shallow"):
        Search(Repository.at(shallow), commits[1], commits[3], changing(commits, 2))


def test_what_names_no_single_commit(history: Callable[[int], Made]) -> None:
    repository, _ = history(2)
    with pytest.raises(UnknownKernel, match="names no single commit"):
        repository.commit("^HEAD")

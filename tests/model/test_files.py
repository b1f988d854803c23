# SPDX-License-Identifier: GPL-2.0-only
"""Several files in one memory."""

from array import array
from random import Random

import pytest

from foliolab.errors import ModelError
from foliolab.model.library import RULES, Counts, Machine, replay
from tests.model.price import cost

PAGES = 4096
REQUEST_PAGES = 32


def both(machine: Machine, pages: list[int], file_of: list[int]) -> Counts:
    return replay(machine, array("I", pages), array("I", file_of), (PAGES, PAGES))


@pytest.mark.parametrize("rules", RULES)
def test_each_file_reads_ahead_as_if_it_were_alone(rules: str) -> None:
    steps, run = [page * 97 % PAGES for page in range(200)], list(range(1000, 2000))
    pages = [page for pair in zip(run, steps * 5, strict=True) for page in pair]
    counts = both(Machine(rules, 2 * PAGES, 2 * PAGES, 32), pages, [1, 0] * 1000)
    apart = [replay(Machine(rules, PAGES, PAGES, 32), pages) for pages in (steps * 5, run)]
    for name in ("accesses", "major_faults", "minor_faults", "pages_read", "waits", "requests"):
        assert getattr(counts, name) == sum(getattr(each, name) for each in apart), name


def sparse(files: int, pages: int, touches: int) -> "tuple[array[int], array[int]]":
    choice = Random(1)
    drawn = [divmod(choice.randrange(files * pages), pages) for _ in range(touches)]
    return array("I", [page for _, page in drawn]), array("I", [file for file, _ in drawn])


@pytest.mark.parametrize(("files", "pages", "times"), [(100, 4096, 1.5), (400, 1024, 1.5), (4000, 64, 1.25)])
def test_files_that_are_touched_here_and_there(files: int, pages: int, times: float) -> None:
    """Each has to learn by itself that single pages do, and may be filled, since nobody knows of the others."""
    page_of, file_of = sparse(files, pages, 8000)
    machine = Machine("adaptive", files * pages, 170_000, 32, REQUEST_PAGES, reclaim="lists")
    counts = replay(machine, page_of, file_of, [pages] * files)
    floor = len({*zip(page_of, file_of, strict=True)})
    found = cost(counts, REQUEST_PAGES) / (floor + floor / REQUEST_PAGES)
    print(f"{counts.pages_read / floor:.2f} times the pages of the floor, {found:.2f} times its cost")  # -rP
    assert found <= times


def test_files_push_each_other_out() -> None:
    half = list(range(64))
    machine = Machine("random", 2 * PAGES, 64, 1)
    counts = both(machine, half * 4, [0] * 64 + [1] * 64 + [0] * 64 + [1] * 64)
    assert (counts.pages_read, counts.evicted, counts.refaults) == (256, 192, 128)
    more = both(Machine("random", 2 * PAGES, 128, 1), half * 4, [0] * 64 + [1] * 64 + [0] * 64 + [1] * 64)
    assert (more.pages_read, more.evicted, more.refaults) == (128, 0, 0)


def test_no_read_goes_from_one_file_into_the_next() -> None:
    counts = both(Machine("fixed", 2 * PAGES, PAGES, 32), [PAGES - 1, 0], [0, 1])
    assert (counts.pages_read, counts.requests) == (17 + 32, 2)


def test_files_lie_one_after_the_other() -> None:
    counts = both(Machine("random", 2 * PAGES, PAGES, 1), [PAGES - 1, 0, PAGES - 1], [0, 1, 1])
    assert counts.seeks == 2


def test_a_file_may_have_no_page() -> None:
    counts = replay(Machine("adaptive", 5, 16, 1), [3, 0], [2, 0], (1, 0, 4))
    assert (counts.accesses, counts.pages_read) == (2, 2)


NO_PAGE = f"A page is not one of the {2 * PAGES} of the model's files"
NO_NUMBER = r"pages and files have numbers from 0 to 2\^32"
OTHER_FILES = "machine has other files than are accessed"


@pytest.mark.parametrize(
    ("pages", "file_of", "files", "words"),
    [
        ([0], [2], (PAGES, PAGES), NO_PAGE),
        ([PAGES], [0], (PAGES, PAGES), NO_PAGE),
        ([0], [-1], (PAGES, PAGES), NO_NUMBER),
        ([-1], [0], (PAGES, PAGES), NO_NUMBER),
        ([0, 1], [0], (PAGES, PAGES), OTHER_FILES),
        ([0], [0], (PAGES,), OTHER_FILES),
        ([2 * PAGES], [], (), NO_PAGE),
    ],
)
def test_what_is_not_there(pages: list[int], file_of: list[int], files: tuple[int, ...], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        replay(Machine("off", 2 * PAGES, PAGES, 32), pages, file_of, files)

# SPDX-License-Identifier: GPL-2.0-only
"""Pages that are used at random, and that memory holds: they are read in blocks once that pays."""

from array import array
from collections.abc import Iterable
from random import Random

import pytest

from foliolab.model.library import Counts, Machine, replay


def run(files: list[int], memory_pages: int, window: int, accesses: Iterable[tuple[int, int]]) -> Counts:
    """Accesses to pages of these files."""
    file_of, pages = zip(*accesses, strict=True)
    machine = Machine("adaptive", sum(files), memory_pages, window)
    return replay(machine, array("I", pages), array("I", file_of), files)


@pytest.mark.parametrize("window", [32, 1024])
def test_what_was_evicted_as_a_whole_is_filled_again(window: int) -> None:
    """Each page of it tells that memory is short, but it is not."""
    random, file_pages = Random(3), 16384
    memory_pages = 4 * file_pages
    files = [file_pages, 2 * memory_pages]
    before = [(0, page) for page in range(file_pages)] + [(1, page) for page in range(files[1])]
    again = [(0, random.randrange(file_pages)) for _ in range(2 * file_pages)]
    all_faults, first_faults = (
        run(files, memory_pages, window, accesses).major_faults for accesses in ([*before, *again], before)
    )
    print(f"{all_faults - first_faults} major faults")
    assert all_faults - first_faults < 1500


@pytest.mark.parametrize("window", [32, 1024])
def test_the_end_of_a_file_is_no_whole_region(window: int) -> None:
    random, whole, end = Random(3), 1 << 18, 3277
    accesses = [(0, whole + random.randrange(end)) for _ in range(4 * end)]
    found = run([whole + end], 15000, window, accesses)
    print(f"{found.major_faults} major faults")
    assert found.major_faults < 150


def test_a_few_touches_are_no_region() -> None:
    """Of a small file, with windows as large as a region; hardly ever one region has most of them by chance."""
    filled = 0
    for seed in range(40):
        random = Random(seed)
        accesses = [(0, random.randrange(16383)) for _ in range(20)]
        filled += run([16383], 1 << 17, 1024, accesses).pages_read >= 400
    assert filled <= 1


@pytest.mark.parametrize("times", [2, 4])
def test_small_steps_fill_nothing_that_memory_cannot_hold(times: int) -> None:
    """Random misses have made all regions full, and none was filled, as memory does not hold them."""
    random, file_pages = Random(3), 1 << 17
    scattered = [(0, random.randrange(file_pages)) for _ in range(file_pages // 66)]
    sweep = [(0, page) for page in range(0, file_pages, 96)]
    found = run([file_pages], file_pages // times, 64, [*scattered, *sweep])
    print(f"{found.pages_read} pages")
    assert found.pages_read < file_pages // times // 2


def test_small_steps_read_the_blocks_of_a_full_region() -> None:
    """A cursor goes on by less than three requests are worth, where random misses have filled all regions."""
    random, file_pages = Random(3), 1 << 14
    filled = [(0, random.randrange(0, file_pages, 2)) for _ in range(200)]
    leaves = [(0, page) for page in range(0, file_pages, 40)]
    pages = run([file_pages], 2 * file_pages, 32, [*filled, *leaves]).pages_read
    alone = run([file_pages], 2 * file_pages, 32, leaves).pages_read
    print(f"{pages} pages, {alone} without the misses before")
    assert pages > 3 * alone

# SPDX-License-Identifier: GPL-2.0-only
"""What Linux 6.12 evicts in a control group, beside what a guest was measured to read.

The guest (x86_64, emulated, 2 CPUs, the variant ``off``) mapped a file of 256 MiB on ext4, and touched its pages in a
control group that was smaller. Only the first five cells were known when the model was made; how
often it gathers statistics was set anew later.
"""

import pytest

from foliolab.model.library import Counts, Machine, Pattern, replay, simulate

FILE_PAGES = 65536

# Pattern, touches, passes, pages that the group held in the end, the window; bytes read and major faults.
MEASURED = [
    (Pattern("zipf"), 60000, 1, 32476, 32, 1263263744, 12391),
    (Pattern("btree"), 60000, 1, 32470, 32, 864157696, 8321),
    (Pattern("zipf"), 30000, 1, 12761, 32, 1409437696, 11664),
    (Pattern("zipf"), 8000, 1, 32478, 1024, 9084755968, 2758),
    (Pattern("objects", object=12), 30000, 1, 32460, 1024, 4433367040, 1337),
    (Pattern("zipf", seed=7), 50000, 1, 24282, 32, 1445978112, 13118),
    (Pattern("random", region=0.6, seed=3), 30000, 2, 32532, 32, 697217024, 10543),
    (Pattern("btree", seed=3), 30000, 1, 12730, 32, 879321088, 7241),
    (Pattern("zipf", seed=2), 5000, 1, 12800, 1024, 11904110592, 3033),
    (Pattern("scan-random"), 6000, 2, 32478, 1024, 10179985408, 3108),
]


@pytest.mark.parametrize(("pattern", "count", "passes", "memory_pages", "window", "read_bytes", "faults"), MEASURED)
def test_reclaim_is_that_of_a_guest(
    pattern: Pattern, count: int, passes: int, memory_pages: int, window: int, read_bytes: int, faults: int
) -> None:
    machine = Machine("off", FILE_PAGES, memory_pages, window, reclaim="lists")
    counts = simulate(machine, pattern, count, passes)
    assert counts.pages_read * 4096 == pytest.approx(read_bytes, rel=0.04)
    assert counts.major_faults == pytest.approx(faults, rel=0.04)


def lists(memory_pages: int, pages: list[int]) -> Counts:
    return replay(Machine("random", 4096, memory_pages, 1, reclaim="lists"), pages)


def test_nothing_is_evicted_while_there_is_room() -> None:
    counts = lists(1000, [*range(1000)] * 3)
    assert (counts.pages_read, counts.evicted) == (1000, 0)


def test_pages_go_in_batches() -> None:
    first, more = (lists(128, [*range(pages)]) for pages in (129, 150))
    assert first.pages_read == 129
    assert 32 <= first.evicted < 64
    assert more.evicted == first.evicted


def test_memory_is_never_exceeded_and_always_enough() -> None:
    for memory in (2, 31, 33, 500):
        counts = lists(memory, [page * 997 % 4096 for page in range(20000)])
        assert 0 < counts.pages_read - counts.evicted <= memory

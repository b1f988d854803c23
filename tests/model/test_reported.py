# SPDX-License-Identifier: GPL-2.0-only
"""What users have reported: cases that can be counted by hand, and a guest's figures beside the model's."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from foliolab import process
from foliolab.errors import BuildError, ModelError
from foliolab.files import MODEL, REPOSITORY
from foliolab.model.library import RECLAIM, RULES, Counts, Machine, Pattern, replay, simulate
from foliolab.model.reported import CASES, MOST_OPENERS, OPENED_BY_EACH, Reported, ReportedStruct, play
from tests.model.test_library import compile_checks, layout, members

FILE = 131072
ROOM = 2 * FILE


Order = Callable[[Reported], list[int]]
"""Of accesses, without any."""


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> Order:
    program = tmp_path_factory.mktemp("cases") / "case_touches"
    source = REPOSITORY / "tests/guest/case_touches.c"
    process.run([process.tool("cc"), "-o", str(program), str(source)], BuildError)

    def pages(reported: Reported) -> list[int]:
        lines = process.run([str(program), *map(str, structs.astuple(reported))], BuildError).splitlines()
        return [int(line.split()[0]) for line in lines]

    return pages


def single(file_pages: int, memory_pages: int = ROOM, reclaim: str = RECLAIM[0]) -> Machine:
    """Reads pages one by one."""
    return Machine("random", file_pages, memory_pages, 1, reclaim=reclaim)


def in_turn(openers: int, pages: int, count: int) -> Reported:
    return Reported("openers", pages, openers, in_turn=openers, count=count)


def test_names_and_structs_are_those_of_c(tmp_path: Path) -> None:
    main = """
        int main(void)
        {
            for (int i = 0; case_names[i]; i++)
                printf("%s ", case_names[i]);
            for (int i = 0; case_names[i]; i++)
                if (case_opens_each(i))
                    printf("%s ", case_names[i]);
            printf("%d", MOST_OPENERS);
        }
    """
    lines = [
        f'#include "{MODEL / "openers.h"}"',
        *layout(ReportedStruct, "case_settings"),
        *members("case_kind", "CASE_", CASES),
        main,
    ]
    compile_checks(lines, tmp_path / "checks")
    printed = process.run([str(tmp_path / "checks")], BuildError).decode().split()
    assert printed == [*CASES, *OPENED_BY_EACH, str(MOST_OPENERS)]


@pytest.mark.parametrize("reclaim", RECLAIM)
@pytest.mark.parametrize("rules", RULES)
def test_one_opener_is_what_accesses_a_file_of_its_own(rules: str, reclaim: str) -> None:
    for memory in (900, 4096):
        machine = Machine(rules, 4096, memory, 32, reclaim=reclaim)
        own = simulate(machine, Pattern("random", seed=3), 3000)
        assert play(machine, Reported("openers", 4096, count=3000, seed=3)) == own


@pytest.mark.parametrize(
    "reported",
    [
        Reported("pieces", 4000, 7, unit=300, passes=2),
        Reported("remote", 4000, 5, unit=90),
        Reported("parts", 4000, unit=64, units=30, count=4),
    ],
)
def test_threads_have_all_in_common(order: Order, reported: Reported) -> None:
    machine = Machine("adaptive", 4000, 1500, 32)
    assert play(machine, reported) == replay(machine, order(reported))


def test_what_one_opener_has_read_others_only_map() -> None:
    first, both = (play(single(256), in_turn(openers, 256, 5000)) for openers in (1, 2))
    assert (first.pages_read, first.major_faults) == (256, 256)
    assert (both.pages_read, both.major_faults) == (256, 256)
    # Each fault of the second maps sixteen pages.
    assert both.minor_faults - first.minor_faults == 256 // 16


def test_side_by_side_each_maps_for_itself() -> None:
    counts = play(single(64), Reported("openers", 64, 8, count=2000))
    assert counts.pages_read == 64
    assert counts.minor_faults >= 7 * 64 // 16


def test_nobody_learns_from_what_others_do_with_the_file() -> None:
    """After a hundred misses more than hits, Linux reads pages one by one: everyone has that to learn."""
    machine = Machine("published", 1 << 22, 1 << 22, 32)
    alone = play(machine, in_turn(1, 1 << 22, 300)).pages_read
    assert 100 * 32 < alone < 100 * 32 + 300
    assert play(machine, in_turn(4, 1 << 22, 300)).pages_read == pytest.approx(4 * alone, rel=0.02)
    assert simulate(machine, Pattern("random"), 1200).pages_read < 1.5 * alone


@pytest.mark.parametrize(
    ("rules", "shared"),
    [("published", False), ("linux-7.3", False), ("adaptive", True), ("xnu", True), ("zfetch", True)],
)
def test_who_learns_for_all_who_open_a_file(order: Order, rules: str, shared: bool) -> None:
    """Pages are so far apart that it makes no difference who maps them."""
    machine = Machine(rules, 1 << 22, 1 << 22, 32)
    reported = Reported("openers", 1 << 22, 4, count=120)
    assert (play(machine, reported) == replay(machine, order(reported))) == shared


@pytest.mark.parametrize("window", [32, 1024])
def test_many_openers_cost_the_adaptive_window_what_one_does(window: int) -> None:
    machine = Machine("adaptive", FILE, ROOM, window)
    one, many = (price(play(machine, Reported("openers", 32768, nr, count=12800 // nr))) for nr in (1, 32))
    assert many == pytest.approx(one, rel=0.04)


@pytest.mark.parametrize("reclaim", RECLAIM)
def test_what_openers_have_closed_was_used(reclaim: str) -> None:
    counts = play(single(4096, 600, reclaim), in_turn(4, 4096, 900))
    assert counts.evicted > 1000
    assert counts.evicted_unused == 0


def test_a_copied_page_of_a_private_mapping_is_not_mapped() -> None:
    touched = 4000 * 11 // 100
    counts = play(single(4000, 2), Reported("snapshot", 4000))
    assert (counts.accesses, counts.major_faults) == (touched, touched)
    assert counts.evicted_unused == pytest.approx(touched / 3, abs=2)


def test_each_page_that_is_written_to_faults_by_itself() -> None:
    counts = play(Machine("fixed", 512, ROOM, 32), Reported("writes", 512, count=20000))
    assert counts.major_faults + counts.minor_faults == 512
    # Nothing lowers the counter of misses but what is written to.
    off = Machine("off", FILE, ROOM, 32)
    written, read = play(off, Reported("writes", FILE, count=8000)), simulate(off, Pattern("random"), 8000)
    assert written.pages_read < read.pages_read / 5


@pytest.mark.parametrize("reclaim", RECLAIM)
def test_reclaim_takes_what_it_is_asked_after_each_phase(reclaim: str) -> None:
    reported = Reported("reclaim", 4096, units=5, count=2000)
    machine = single(4096, 4096, reclaim)
    most_in_excess = 31 if reclaim == "lists" else 0
    assert play(machine, reported, 0).evicted == 0
    evicted = play(machine, reported, 100).evicted
    assert 4 * 100 <= evicted <= 4 * (100 + most_in_excess)
    whole = play(machine, reported, 1 << 40)
    phase = play(machine, structs.replace(reported, units=1))
    assert whole.evicted > 3 * phase.pages_read
    assert whole.refaults > 0


MEASURED = [
    (Reported("openers", 32768, 32, count=400), 32, "off", 308, 1354),
    (Reported("openers", 32768, 32, count=400), 1024, "off", 146, 50),
    (Reported("writes", FILE, count=8000), 32, "off", 987, 7553),
    (Reported("writes", FILE, count=8000), 1024, "off", 578, 193),
]
"""Of a guest with a file of 512 MiB and 1 GiB of memory: case, window, variant, price in MiB, major faults."""


@pytest.mark.parametrize(("reported", "window", "rules", "price_mib", "faults"), MEASURED)
def test_the_model_costs_what_a_guest_did(
    reported: Reported, window: int, rules: str, price_mib: int, faults: int
) -> None:
    counts = play(Machine(rules, FILE, ROOM, window), reported)
    assert price(counts) == pytest.approx(price_mib, rel=0.08)
    assert counts.major_faults == pytest.approx(faults, rel=0.06)


def price(counts: Counts) -> float:
    return (counts.pages_read + 32 * counts.requests) / 256


def test_the_same_seed_costs_the_same_and_another_one_nearly() -> None:
    machine = Machine("adaptive", FILE, ROOM, 32)
    reported = Reported("openers", 32768, 8, count=400)
    counts = play(machine, reported)
    assert play(machine, reported) == counts
    other = play(machine, structs.replace(reported, seed=9))
    assert other != counts
    assert price(other) == pytest.approx(price(counts), rel=0.1)


def test_the_largest_number_of_openers() -> None:
    counts = play(single(64), in_turn(MOST_OPENERS, 64, 1000))
    assert (counts.pages_read, counts.accesses) == (64, 64000)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "strangers"}, "The model has no cases 'strangers'"),
        ({"pages": 101}, "The model's pages has to be at most 100, not 101."),
        ({"pages": 0}, r"The model's pages has to be at least 1 and below 2\^32, not 0."),
        ({"runners": 65}, "The model's runners has to be at most 64, not 65."),
        ({"in_turn": 3}, "The model's in_turn has to be at most 2, not 3."),
        ({"in_turn": -1}, "The model's in_turn has to be at least 0"),
        ({"unit": 51}, "The model's unit has to be at most 50, not 51."),
        ({"count": 0}, "The model's count has to be at least 1"),
        ({"seed": -1}, "The model's seed has to be at least 0"),
        ({"kind": "parts", "units": (1 << 32) - 1, "count": (1 << 32) - 1}, "There is no memory to simulate"),
    ],
)
def test_what_is_not_there(changes: dict[str, object], words: str) -> None:
    reported = Reported("openers", 50, 2, count=10)
    with pytest.raises(ModelError, match=words):
        play(single(100), structs.replace(reported, **changes))


def test_nothing_is_reclaimed_by_less_than_nothing() -> None:
    with pytest.raises(ModelError, match="reclaimed_pages has to be at least 0"):
        play(single(100), Reported("reclaim", 50), -1)

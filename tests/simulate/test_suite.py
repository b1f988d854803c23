# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from foliolab.device import load_devices
from foliolab.errors import BadExperiment
from foliolab.files import MODEL
from foliolab.grouped import grouped
from foliolab.model.library import KINDS, ORDERS, PAGE_BYTES
from foliolab.model.reported import CASES
from foliolab.simulate.suite import Case, load_suite, memory_pages

SUITE = load_suite()
FIRST = [case for case in SUITE.cases if not case.family]
NEW = [case for case in SUITE.cases if case.family]


def cells(cases: Iterable[Case]) -> int:
    return sum(len(SUITE.places(case)) for case in cases) * len(load_devices())


def accesses(cases: Iterable[Case]) -> int:
    """Of one variant at each place."""
    return sum(len(SUITE.places(case)) * case.count * case.passes * (1 + len(case.then)) for case in cases)


def test_names_fit_on_a_command_line() -> None:
    reports = [case.name for case in SUITE.reports]
    for names in ([case.name for case in SUITE.cases], reports, list(load_devices())):
        assert not [name for name in names if "," in name or " " in name or name[0].isdecimal()]


def test_every_pattern_and_order_is_there() -> None:
    assert {case.pattern.kind for case in SUITE.cases} == set(KINDS)
    assert {case.pattern.order for case in SUITE.cases} == set(ORDERS)


def test_no_case_is_there_twice() -> None:
    for cases in (SUITE.cases, SUITE.reports):
        assert len({replace(case, name="") for case in cases}) == len(cases)


def test_what_is_judged_only() -> None:
    assert {case.name for case in FIRST if case.judged_only} == {
        "random-50%", "random-passes", "dense-third", "zipf-long", "stride-5", "stride-17", "stride-63", "stride-1025",
        "drift-40", "streams-4", "objects-12", "objects-3-backward", "objects-96-shuffled", "scan-random-long",
    }  # fmt: skip


def test_the_first_patterns_stay_comparable() -> None:
    """Figures that are stored are of these cells."""
    assert list(SUITE.cases) == [*FIRST, *NEW]
    assert (len(FIRST), cells(FIRST)) == (58, 2900)
    assert not any(case.file_pages for case in FIRST)


def test_a_family_is_judged_only_as_a_whole_and_by_patterns_that_are_in_no_other() -> None:
    judged, tuned = ([case for case in NEW if case.judged_only == only] for only in (True, False))
    assert {case.family for case in judged} == {"walks", "hot-spots", "descents", "threads"}
    assert {case.family for case in tuned} == {"streams", "odd-objects", "merges", "small-files"}
    assert not {case.pattern.kind for case in judged} & {case.pattern.kind for case in [*FIRST, *tuned]}


def test_new_families_take_less_time_than_the_first_patterns() -> None:
    assert all(SUITE.places(case) for case in NEW)
    assert 1000 < cells(NEW) < 0.6 * cells(FIRST)
    assert accesses(NEW) < 0.6 * accesses(FIRST)


def test_new_families_have_files_and_seeds_of_their_own() -> None:
    assert len({case.file_pages for case in NEW}) >= 6
    seeds = [case.pattern.seed for case in NEW if case.judged_only]
    assert len(set(seeds)) == len(seeds)
    assert not set(seeds) & {case.pattern.seed for case in SUITE.cases if not case.judged_only}


def test_reports_are_of_every_case_but_one() -> None:
    """That little is read beyond a mapping is for kernels to show: here a mapping is of a whole file."""
    assert {case.accesses.kind for case in SUITE.reports} == set(CASES) - {"parts"}
    assert all(SUITE.places(case) for case in SUITE.reports)
    assert all(case.reclaimed_pages > 0 for case in SUITE.reports if case.accesses.kind == "reclaim")


def test_each_family_of_reports_is_judged_by_other_sizes_seeds_and_runners() -> None:
    families = grouped(SUITE.reports, lambda case: case.family)
    assert set(families) == {"openers", "pieces", "snapshots", "reclaimed", "tensors", "random-writes"}
    for cases in families.values():
        tuned, judged = ([case.accesses for case in cases if case.judged_only == only] for only in (False, True))
        assert len(tuned) >= 2 <= len(judged)
        assert len({each.kind for each in (*tuned, *judged)}) == 1
        assert not {replace(each, seed=1) for each in tuned} & {replace(each, seed=1) for each in judged}
        # Nothing of pieces is random.
        assert tuned[0].kind == "pieces" or not {each.seed for each in tuned} & {each.seed for each in judged}


def test_windows_are_those_that_devices_may_have() -> None:
    assert [window << 10 for window in SUITE.windows_kb] == [PAGE_BYTES << doubled for doubled in range(11)]
    assert set(SUITE.read_ahead_kb) <= set(SUITE.windows_kb)


def test_memory_holds_two_of_the_largest_windows() -> None:
    least = min(memory_pages(SUITE.file_pages, times) for times in SUITE.times_memory)
    assert all(len(SUITE.places(case)) == len(SUITE.times_memory) * len(SUITE.read_ahead_kb) for case in FIRST)
    assert least * PAGE_BYTES >= 2 * max(SUITE.windows_kb) << 10


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"random-1%", count', '"random-1%", number', "'cases[1].number' is not a key that is known here."),
        ("count = 2500,", "", "'cases[1].count' is missing."),
        ('kind = "zipf"', 'kind = "zip"', "'cases[8].pattern.kind' has to be one of random, "),
        ('"adaptive-default", rules = "adaptive"', '"x", rules = "x"', "'ways[5].rules' has to be one of off, "),
        ('"adaptive-default"', '"adaptive"', "'ways' has the name 'adaptive' more than once."),
        ('"adaptive-default"', '"fixed-4"', "'ways' has the name 'fixed-4' more than once."),
        ('"xnu"', '"xnux"', "'ways[6].name' names 'xnux', which is not one of off, "),
        ('name = "off"', 'name = "old", rules = "off"', "'ways' has no 'off'."),
        ("times_memory = [0.5", "times_memory = [0", "'times_memory[0]' is wrong: expected `int` >= 1"),
        ("at_most = 1.0", "at_mosts = 1.0", "'expect[0].at_mosts' is not a key that is known here."),
        ('group = "patterns"', 'group = "pattern"', "'expect[0].cell.group' names 'pattern', which is not one of patt"),
        ('metrics = ["worst"]', 'metrics = ["best"]', "'expect[2].metrics' names 'best', which is not one of mean, "),
        ('"report:pieces-8"', '"pieces-8"', "'reports[6].name' does not begin with 'report:'."),
        ('"report:pieces-8"', '"report:openers-1"', "'reports' has the name 'report:openers-1' more than once."),
        ('kind = "writes"', 'kind = "write"', "'reports[25].accesses.kind' has to be one of openers, "),
        (", at_least = 1.001", "", "'expect[24].at_least' is missing, and 'at_most' as well."),
        ("at_most = 1.0", 'scales = ["full"], at_most = 1.0', "'expect[0].scales' is about experiments only."),
        ('variants = ["xnu"', 'variants = ["x"', "'expect[24].variants' names 'x', which is not one of off, "),
    ],
)
def test_mistakes_are_named_with_their_keys(old: str, new: str, words: str, tmp_path: Path) -> None:
    text = (MODEL / "suite.toml").read_text()
    assert old in text
    file = tmp_path / "suite.toml"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(BadExperiment) as error:
        load_suite(file)
    assert f"{file}: {words}" in str(error.value)

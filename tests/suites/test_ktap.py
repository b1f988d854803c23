# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.suites.ktap import End, parse, read, together, worse

PASS, SKIP, FAIL = End.PASS, End.SKIP, End.FAIL


def test_every_form_of_a_result_is_read() -> None:
    output = """\
TAP version 13
1..5
# ok 9 is a comment
ok 1 reads
not ok 2 - writes
ok 3 swaps # SKIP no swap
not ok 4 jumps # XFAIL known
ok 5
# Totals: pass:2 fail:1 xfail:1 xpass:0 skip:1 error:0
"""
    assert parse(output) == {"reads": PASS, "writes": FAIL, "swaps": SKIP, "jumps": SKIP, "5": PASS}


def test_what_changes_from_run_to_run_is_no_part_of_a_name() -> None:
    before = parse("ok 1 maps 0x7f5512340000\nok 2 Extra pages 9 (0.2%), extra faults 9.\n")
    after = parse("ok 7 maps 0x7fff00001000\nok 8 Extra pages 0 (0.0%), extra faults 0.\n")
    assert before == after == {"maps ...": PASS, "Extra pages ...": PASS}


def test_equal_names_stay_apart() -> None:
    assert parse("ok 1 again\nnot ok 2 again\nok 3 again\n") == {"again": PASS, "again (2)": FAIL, "again (3)": PASS}


def test_what_is_run_is_a_part_of_the_name() -> None:
    output = """\
# [RUN] fork ... with base page
ok 1 No leak
# [RUN] fork ... with THP
ok 2 No leak
# [RUN] vmsplice ... with THP
ok 3 # XFAIL Leak
"""
    names = {"fork ... with base page: No leak": PASS, "fork ... with THP: No leak": PASS}
    assert parse(output) == names | {"vmsplice ... with THP: Leak": SKIP}


def test_the_tests_of_userfaultfd_have_a_form_of_their_own() -> None:
    output = """\
Testing move on anon... done
Testing wp-fork on hugetlb... skipped [reason: memory allocation failed]
Testing poison on shmem... failed [reason: (got -1)]
Userfaults unit tests: pass=1, skip=1, fail=1 (total=3)
"""
    assert parse(output) == {"move on anon": PASS, "wp-fork on hugetlb": SKIP, "poison on shmem": FAIL}


def test_khugepaged_tells_by_the_colour() -> None:
    output = """\
Run test: full (madvise:anon)
Collapse table.... \x1b[32mOK\x1b[0m
Swap out...   1/512...Swap out... \x1b[33mSkip\x1b[0m
Collapse it... \x1b[31mTimeout\x1b[0m
"""
    named = {"Collapse table": PASS, "Swap out": SKIP, "Collapse it": FAIL}
    assert parse(output) == {f"full (madvise:anon): {name}": verdict for name, verdict in named.items()}


def test_bailing_out_is_a_failure() -> None:
    assert parse("ok 1 opens\nBail out! no memory\n") == {"opens": PASS, "what was planned": FAIL}


@pytest.mark.parametrize(
    ("output", "errors"),
    [
        ("1..2\nok 1 a\nok 2 b\n", []),
        ("ok 1 a\nok 2 b\n1..2\n", []),
        ("1..0 # SKIP no swap\n", []),
        ("ok 1 a\nok 3 b\n", []),
        ("1..2\nok 1 a\n", ["1..2, but results 1"]),
        ("1..1\nok 1 a\nok 2 b\n", ["1..1, but results 1, 2"]),
        ("1..2\nok 1 a\nok 1 b\n", ["1..2, but results 1, 1"]),
        ("1..1\n", ["1..1, but results none"]),
        ("1..1\n1..2\nok 1 a\n", ["another plan, 1..2"]),
        ("1..1\nok 1 a\nBail out! no memory\n", ["Bail out! no memory"]),
    ],
)
def test_a_plan_is_for_all_results_and_no_more(output: str, errors: list[str]) -> None:
    assert list(read(output).errors) == errors
    assert ("what was planned" in parse(output)) is bool(errors)


NESTED = """\
KTAP version 1
1..2
    KTAP version 1
    # Subtest: window
    1..2
        # Subtest: grows
        ok 1 by one
        ok 2 by two
    ok 1 grows
    not ok 2 shrinks
# window: pass:1 fail:1 skip:0 total:2
not ok 1 window
    1..1
    ok 1 counts # SKIP no counter
ok 2 text
"""


def test_what_stands_to_the_right_is_a_part_of_what_comes_below() -> None:
    window, text = read(NESTED).cases
    assert (window.name, window.verdict, text.name, text.verdict) == ("window", FAIL, "text", PASS)
    assert [(part.name, part.verdict) for part in window.parts] == [("grows", PASS), ("shrinks", FAIL)]
    assert [part.name for part in window.parts[0].parts] == ["by one", "by two"]
    assert [(part.name, part.verdict, part.reason) for part in text.parts] == [("counts", SKIP, "no counter")]
    assert parse(NESTED) == {"window": FAIL, "text": PASS}


@pytest.mark.parametrize(
    ("line", "errors"),
    [
        ("    not ok 2 shrinks\n", ["1..2, but results 1"]),
        ("    ok 1 grows\n", ["1..2, but results 2"]),
        ("    ok 1 counts # SKIP no counter\n", ["1..1, but results none"]),
        ("ok 2 text\n", ["1..2, but results 1"]),
        ("        ok 1 by one\n", ["1..1, but results 2"]),
    ],
)
def test_a_nested_plan_is_checked_as_well(line: str, errors: list[str]) -> None:
    assert list(read(NESTED).errors) == []
    assert list(read(NESTED.replace(line, "")).errors) == errors


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ({"a": PASS}, {"a": PASS}, []),
        ({"a": PASS}, {"a": SKIP}, ["a"]),
        ({"a": SKIP}, {"a": FAIL}, ["a"]),
        ({"a": FAIL}, {"a": FAIL}, []),
        ({"a": FAIL}, {"a": PASS}, []),
        ({"a": PASS, "b": PASS}, {"b": PASS}, ["a"]),
        ({"a": FAIL}, {}, []),
        ({}, {"a": PASS, "b": FAIL}, ["b"]),
    ],
)
def test_what_counts_as_worse(before: dict[str, End], after: dict[str, End], lost: list[str]) -> None:
    assert worse(before, after) == lost


@pytest.mark.parametrize(
    ("after", "fell"), [({}, []), ({"a": PASS}, []), ({"a": SKIP}, ["a"]), ({"a": FAIL}, ["a"])], ids=str
)
def test_what_did_not_run_before_may_not_run_after_but_not_fail(after: dict[str, End], fell: list[str]) -> None:
    assert worse({"a": PASS}, after, {"a"}) == fell


def test_two_runs_are_as_good_as_the_worse_one_of_those_that_got_there() -> None:
    first = {"a": PASS, "b": FAIL, "c": SKIP, "d": PASS}
    second = {"a": SKIP, "b": PASS, "c": SKIP, "e": PASS}
    assert together(first, second, min) == {"a": SKIP, "b": FAIL, "c": SKIP, "d": PASS, "e": PASS}
    assert together(first, {}, min) == together({}, first, min) == first

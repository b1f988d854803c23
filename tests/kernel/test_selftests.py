# SPDX-License-Identifier: GPL-2.0-only
"""Reports of kselftests and KUnit."""

import pytest

from foliolab.suites.ktap import End
from tests.kernel.selftests import read

PASS, SKIP, FAIL = End.PASS, End.SKIP, End.FAIL


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

# SPDX-License-Identifier: GPL-2.0-only
"""Leaving commits out of a series whose others stand beside them."""

import pytest

from foliolab.errors import HookError
from foliolab.kernel.without import without

LIST = "mm/Makefile"
PRISTINE = {LIST: b"a\nz\n"}
FIRST = {LIST: b"a\nm\nz\n", "mm/m.c": b"one\n"}


def test_lines_of_what_is_left_out_go_and_those_beside_them_stay() -> None:
    second = {LIST: b"a\nb\nm\nn\ny\n", "mm/n.c": b"new\n"}
    assert without([FIRST, second], PRISTINE, {0}) == [{LIST: b"a\nb\nn\ny\n", "mm/n.c": b"new\n"}]
    third = {LIST: b"a\nm\nn\ny\n"}
    assert without([FIRST, second, third], PRISTINE, {0})[1] == {LIST: b"a\nn\ny\n"}


def test_nothing_left_out_is_the_series() -> None:
    assert without([FIRST, {LIST: b"m\n"}], PRISTINE, set()) == [FIRST, {LIST: b"m\n"}]


@pytest.mark.parametrize(
    "second",
    [
        {LIST: b"a\nM\nz\n"},
        {LIST: b"a\nz\n"},
        {"mm/m.c": b"two\n"},
        {"mm/m.c": b"one\ntwo\n"},
        {"mm/lines.c": b"one\nmore\ntwo\nlast\n"},
    ],
)
def test_a_change_of_what_is_left_out(second: dict[str, bytes]) -> None:
    first = {**FIRST, "mm/lines.c": b"one\ntwo\nlast\n"}
    with pytest.raises(HookError, match=next(iter(second))):
        without([first, second], {**PRISTINE, "mm/lines.c": b"last\n"}, {0})

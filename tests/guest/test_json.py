# SPDX-License-Identifier: GPL-2.0-only
import json

import pytest

from foliolab import process
from foliolab.errors import BuildError
from tests.guest.program import sanitized

GOOD = [
    "",
    "plain",
    'quote " backslash \\ slash /',
    "\b\f\n\r\t\x01\x1f",
    "größe 大 😀",
    " space around ",
    "{[,:]}",
    "x" * 20000,
]

ESCAPED = {r'"\/"': "/", r'"\u0041\u00e9\u5927"': "Aé大", '  "a"  ': "a"}

BAD = [
    "",
    "plain",
    '"',
    '"open',
    r'"open\"',
    '"ends in backslash\\',
    r'"\x"',
    r'"\u12"',
    r'"\u12',
    r'"\uzzzz"',
    r'"\u0000"',
    r'"\ud83d\ude00"',
    '"a" b',
]


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sanitized("json_echo", tmp_path_factory.mktemp("json"))


def echoed(program: str, lines: list[str]) -> list[str]:
    text = "".join(f"{line}\n" for line in lines)
    return process.run([program], BuildError, stdin=text.encode()).decode().splitlines()


def test_strings_come_through(echo: str) -> None:
    lines = echoed(echo, [json.dumps(text, ensure_ascii=False) for text in GOOD])
    assert [json.loads(line) for line in lines] == GOOD


def test_escapes_are_decoded(echo: str) -> None:
    assert [json.loads(line) for line in echoed(echo, list(ESCAPED))] == list(ESCAPED.values())


def test_what_is_no_string_is_refused(echo: str) -> None:
    assert echoed(echo, BAD) == ["error"] * len(BAD)

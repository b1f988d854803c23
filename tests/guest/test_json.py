# SPDX-License-Identifier: GPL-2.0-only
import json
from pathlib import Path

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.errors import BuildError

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
def echo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("json") / "json_echo"
    flags = ["-g", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-fsanitize=address,undefined"]
    source = str(Path(__file__).with_name("json_echo.c"))
    compiler = process.tool(NATIVE.compiler)
    process.run([compiler, *flags, "-o", str(program), source], BuildError)
    return program


def echoed(program: Path, lines: list[str]) -> list[str]:
    text = "".join(f"{line}\n" for line in lines)
    return process.run([str(program)], BuildError, stdin=text.encode()).decode().splitlines()


def test_strings_come_through(echo: Path) -> None:
    lines = echoed(echo, [json.dumps(text, ensure_ascii=False) for text in GOOD])
    assert [json.loads(line) for line in lines] == GOOD


def test_escapes_are_decoded(echo: Path) -> None:
    assert [json.loads(line) for line in echoed(echo, list(ESCAPED))] == list(ESCAPED.values())


def test_what_is_no_string_is_refused(echo: Path) -> None:
    assert echoed(echo, BAD) == ["error"] * len(BAD)

# SPDX-License-Identifier: GPL-2.0-only
"""The commands in documents for people: ./lab takes their options, and what they name is there."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from foliolab.campaign.measure import planned
from foliolab.cli.main import command_line
from foliolab.cli.measure import requested
from foliolab.errors import LabError
from tests.test_documents import DOCUMENTS

_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_IN_TEXT = re.compile(r"`\./lab ([^`]+)`")
_PLACEHOLDER = re.compile(r"\b(?:NAME|EXPERIMENT)\b|\.toml\b")
_STAND_INS = {"NAME": "arm64", "PROFILE": "nvme"}
"""What is typed for a placeholder whose value is looked at."""
_LEFT_OUT = ("are required: ", "expected one argument")
"""Complaints that prose may earn, which names commands and options without all that they take."""


_command_line = cache(command_line)


def commands(text: str) -> Iterator[list[str]]:
    """What comes after ./lab wherever that can be typed."""
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if "/lab " in line:
                yield from _commands(line)


def _commands(line: str) -> Iterator[list[str]]:
    split = shlex.shlex(line, posix=True, punctuation_chars=True)
    split.whitespace_split = True
    for operator, group in groupby(split, lambda word: not set(word) - set(split.punctuation_chars)):
        words = list(group)
        places = [place for place, word in enumerate(words) if word.endswith("/lab")]
        if not operator and places:
            yield words[places[0] + 1 :]


def mentions(text: str) -> Iterator[list[str]]:
    """Those in prose."""
    for command in _IN_TEXT.findall(_BLOCK.sub("", text)):
        if not command.startswith("COMMAND"):
            yield shlex.split(command)


def wrong(command: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What ./lab has against a command line, before it does anything; empty if nothing."""
    try:
        arguments = _command_line().parse_args([_STAND_INS.get(word, word) for word in command])
        if command[0] == "measure" and not _PLACEHOLDER.search(" ".join(command)):
            planned(replace(requested(arguments), kernels=()))
    except SystemExit as stop:
        return "" if stop.code == 0 else capsys.readouterr().err.strip().splitlines()[-1]
    except LabError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_can_be_typed(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = document.read_text()
    found = [(command, wrong(command, capsys)) for command in commands(text)]
    named = [(command, wrong(command, capsys)) for command in mentions(text)]
    found += [(command, words) for command, words in named if not any(left in words for left in _LEFT_OUT)]
    assert [(" ".join(command), words) for command, words in found if words] == []


def test_what_cannot_be_typed_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "Call `./lab no-such` or `./lab measure`, not ./lab this.\n\n```\n"
        "./lab measure no-such && A=1 ssh b /srv/lab measure workloads --cell workload=no-such  # ./lab not this\n"
        "./lab measure sparse-mmap --variant 'off>,no-such' | jq .\n"
        "./lab measure \\\n    sparse-mmap >log\n./lab\n```\n"
    )
    assert list(mentions(text)) == [["no-such"], ["measure"]]
    assert list(commands(text)) == [
        ["measure", "no-such"],
        ["measure", "workloads", "--cell", "workload=no-such"],
        ["measure", "sparse-mmap", "--variant", "off>,no-such"],
        ["measure", "sparse-mmap"],
    ]
    complaints = [wrong(command, capsys) for command in (*mentions(text), *commands(text))]
    assert "invalid choice: 'no-such'" in complaints[0]
    assert _LEFT_OUT[0] in complaints[1]
    assert complaints[2].startswith("There is no experiment 'no-such'")
    assert "workload=no-such" in complaints[3]
    assert complaints[4].startswith("There is no variant 'off>'")
    assert complaints[5] == ""

# SPDX-License-Identifier: GPL-2.0-only
"""Tables of documents that a command of the lab makes, and what was typed by hand.

A block stands between two comments, of which the first has the command::

    <!-- foliolab: report fault-cost --released --table -->
    ...
    <!-- foliolab: end -->
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import UsageError

_BLOCK = re.compile(
    r"(?P<head><!-- foliolab: (?P<command>(?!end -->).+?) -->\n)(?P<content>.*?)(?P<foot><!-- foliolab: end -->)",
    re.DOTALL,
)
_ALLOWED = ("report", "regret")
"""Commands that measure nothing."""

Run = Callable[[Sequence[str]], str]
"""Runs a command of the lab, and returns what it prints."""


@dataclass(frozen=True)
class Block:
    command: str
    content: str


def blocks(text: str) -> list[Block]:
    """In order. UsageError for one that has no end, or whose command may measure."""
    found = [Block(match["command"], match["content"]) for match in _BLOCK.finditer(text)]
    if len(found) * 2 != text.count("<!-- foliolab:"):
        raise UsageError("A comment '<!-- foliolab: ... -->' begins or ends no block.")
    for block in found:
        words = block.command.split()
        if words[0] not in _ALLOWED and not (words[0] == "regress" and "--released" in words):
            raise UsageError(f"'{block.command}' makes no table: {', '.join(_ALLOWED)} and regress --released do.")
    return found


def filled(text: str, run: Run) -> str:
    """The text with what the commands of its blocks print."""
    blocks(text)
    return _BLOCK.sub(lambda found: found["head"] + run(shlex.split(found["command"])) + found["foot"], text)


def differing(text: str, run: Run) -> list[str]:
    """The commands of blocks that have not what the commands print."""
    return [block.command for block in blocks(text) if block.content != run(shlex.split(block.command))]


def typed(text: str) -> str:
    """The text without blocks and comments."""
    return re.sub(r"<!--.*?-->", "", _BLOCK.sub("", text), flags=re.DOTALL)


def typed_figures(text: str) -> int:
    """How many cells of tables have a figure that was typed."""
    return sum(1 for cell in _cells(typed(text)) if _is_figure(cell))


def _cells(text: str) -> Iterator[str]:
    """Of the bodies of all tables."""
    for table in re.findall(r"^\|[ :|-]+\|\n((?:\|.*\n?)+)", text, re.MULTILINE):
        for line in table.splitlines():
            yield from re.split(r"(?<!\\)\|", line.strip().strip("|"))[1:]


def _is_figure(cell: str) -> bool:
    """A measured figure has a digit outside of code and links."""
    return bool(re.search(r"\d", re.sub(r"`[^`]*`|\]\([^)]*\)", "", cell)))


def documents(shown: Sequence[str], root: Path) -> list[Path]:
    """The files that parts of the plan name, each once."""
    return [root / name for name in dict.fromkeys(place.partition("#")[0] for place in shown)]

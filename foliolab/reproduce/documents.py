# SPDX-License-Identifier: GPL-2.0-only
"""Figures of documents that commands of the lab make, and how many were typed by hand.

A block stands between two comments, of which the first has the command::

    <!-- foliolab: report fault-cost --released --table -->
    ...
    <!-- foliolab: end -->

A figure in a sentence, or in a table that is no block, has a name of release/figures.toml behind it::

    It takes 2<!--=cost-of-a-page--> % more instructions.

Where there is nothing yet that a command could show, what was typed stays, and is counted as such. A table with
columns of which some were not measured shows the others.
"""

import itertools
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from foliolab.analyse.verdict import Status
from foliolab.errors import NoResult, UsageError
from foliolab.reproduce.figures import Figure, spell

_MADE = re.compile(
    r"(?P<head><!-- foliolab: (?P<command>(?!end -->).+?) -->\n)(?P<block>.*?)(?P<foot><!-- foliolab: end -->)"
    r"|(?P<figure>[-+]?\d[\d,]*(?:\.\d+)?|`\w+`)(?P<mark><!--=(?P<name>[\w.-]+)-->)",
    re.DOTALL,
)
"""A block, or a figure and its mark."""
_PUBLISHED = ("published:", "reported:")
"""How the head of a column begins whose figures are others': they are typed, and not counted."""

Printed = Callable[[Sequence[str]], str]
"""Runs a command of the lab that measures nothing, and returns what it prints; NoResult if there is nothing."""


@dataclass(frozen=True)
class FilledDocument:
    """A document with what commands make."""

    text: str
    changed: tuple[str, ...]
    """The commands of blocks, and the names of figures, that had something else before."""
    waiting: tuple[str, ...]
    """Those of which nothing was measured yet, or not all."""
    typed: int
    """How many cells of tables have a figure that no command makes, and how many marked ones no command makes yet."""


def shown(text: str, figures: Mapping[str, Figure]) -> set[str]:
    """The commands whose output the document shows."""
    names = [found["name"] for found in _MADE.finditer(text)]
    blocks = {found["command"] for found in _MADE.finditer(text) if found["command"]}
    return blocks | {figures[name].command for name in names if name in figures}


def fill(text: str, run: Printed, figures: Mapping[str, Figure]) -> FilledDocument:
    """The document anew.

    UsageError for a comment that begins or ends no block, stands behind no figure, or has the name of an unknown one,
    and whatever a command fails with, but for NoResult.
    """
    _check_comments(text, figures)
    changed: list[str] = []
    waiting: list[str] = []
    written, typed, end = "", "", 0
    for found in _MADE.finditer(text):
        plain = text[end : found.start()]
        end = found.end()
        before = found["block"] if found["command"] else found["figure"]
        after = _make(found, run, figures)
        name = found["command"] or found["name"]
        if after is None or Status.NOT_MEASURED in after:
            waiting.append(name)
        if after not in (None, before):
            changed.append(name)
        written += f"{plain}{found['head'] or ''}{before if after is None else after}{found['foot'] or found['mark']}"
        typed += plain + (found[0] if after is None else "")
    return FilledDocument(written + text[end:], tuple(changed), tuple(waiting), _count_typed(typed + text[end:]))


def _check_comments(text: str, figures: Mapping[str, Figure]) -> None:
    found = list(_MADE.finditer(text))
    names = [match["name"] for match in found if match["name"]]
    if (len(found) - len(names)) * 2 != text.count("<!-- foliolab:"):
        raise UsageError("A comment '<!-- foliolab: ... -->' begins or ends no block.")
    if len(names) != text.count("<!--="):
        raise UsageError("A comment '<!--=...-->' stands behind no figure.")
    if unknown := [name for name in names if name not in figures]:
        raise UsageError(f"There is no figure '{unknown[0]}' in release/figures.toml.")


def _make(found: re.Match[str], run: Printed, figures: Mapping[str, Figure]) -> str | None:
    """The content of a block, or a figure; None if there is no result yet."""
    try:
        if found["command"]:
            return run(shlex.split(found["command"]))
        figure = figures[found["name"]]
        return spell(figure, run(shlex.split(figure.command)), found["figure"])
    except NoResult:
        return None


def _count_typed(text: str) -> int:
    marks = sum(line.count("<!--=") for line in text.splitlines() if not line.startswith("|"))
    return marks + sum(map(_is_figure, _cells(re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))))


def _cells(text: str) -> Iterator[str]:
    """Of the bodies of all tables, but for first columns and what others published."""
    for head, body in re.findall(r"^(\|.*)\n\|[ :|-]+\|\n((?:\|.*\n?)+)", text, re.MULTILINE):
        ours = [not title.startswith(_PUBLISHED) for title in _split(head)]
        for line in body.splitlines():
            yield from itertools.compress(_split(line)[1:], ours[1:])


def _split(row: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def _is_figure(cell: str) -> bool:
    """A measured figure has a digit outside of code and links."""
    return bool(re.search(r"\d", re.sub(r"`[^`]*`|\]\([^)]*\)", "", cell)))

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
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from foliolab.analyse.expected import Status
from foliolab.errors import BadExperiment, NoResult, UsageError
from foliolab.experiment.load import find_experiment
from foliolab.experiment.metrics import METRICS
from foliolab.experiment.variants import check_name
from foliolab.toml import Place, Text, Value, read_toml

FIGURES = "figures.toml"
"""In release/."""

_TAKE: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "only": min,
    "least": min,
    "most": max,
    "farthest": lambda values: max(map(abs, values)),
    "values": lambda values: len(set(values)),
    "rows": len,
}

PrintedRow = dict[str, Any]


class Figure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    value: Text
    """A key of the row."""
    where: Mapping[str, Value | Sequence[Value]] = {}
    """What a row has to have; of a list one."""
    against: Mapping[str, Value] = {}
    """In what the row differs from the one by whose value its own is divided."""
    take: Literal["only", "least", "most", "farthest", "values", "rows"] = "only"
    """Of several rows: the least value, the greatest, the one farthest from 0 without its sign; how many values, or
    rows, there are."""
    unit: Literal["", "%", "% more", "% less", "% gained", "times less"] = ""
    list: str = ""
    """That has the row; the first of what the command prints unless it is named."""
    command: str = ""
    """That of the table in which the figure stands."""


class _Source(Struct, frozen=True, forbid_unknown_fields=True):
    command: Text
    """That prints JSON and measures nothing, or is one of the plan."""
    figures: Annotated[dict[str, Any], Meta(min_length=1)]


def load_figures(file: Path) -> dict[str, Figure]:
    """By name; BadExperiment for a mistake in the file."""
    top = Place(file)
    figures: dict[str, Figure] = {}
    for title, content in read_toml(file).items():
        source = top.at(title).convert(content, _Source)
        for name, keys in source.figures.items():
            place = top.at(title).at("figures").at(name)
            if name in figures:
                place.fail("is the name of another figure, too")
            figures[name] = structs.replace(place.convert(keys, Figure), command=source.command)
    return figures


def spell(figure: Figure, output: str, before: str) -> str:
    """The figure from what its command prints, with as many digits and the sign that it had before.

    NoResult if no row has it, BadExperiment if several do.
    """
    value = _taken(figure, _rows(output, figure.list))
    if isinstance(value, str):
        return f"`{value}`"
    sign = "+" if before[0] in "+-" else ""
    digits = len(before.partition(".")[2])
    return f"{round(value, digits) + 0.0:{sign},.{digits}f}"


def _taken(figure: Figure, rows: Sequence[PrintedRow]) -> Any:
    found = [row for row in rows if _has(row, figure.where) and row.get(figure.value) is not None]
    if not found:
        raise NoResult(f"No row of '{figure.command}' has {figure.value} where {figure.where}.")
    values = [_converted(_over(row, figure, rows), figure.unit) for row in found]
    if figure.take == "only" and len(set(values)) > 1:
        raise BadExperiment(f"'{figure.command}' has several rows with {figure.value} where {figure.where}.")
    return _TAKE[figure.take](values)


def _over(row: PrintedRow, figure: Figure, rows: Sequence[PrintedRow]) -> Any:
    """The row's value, over that of the other row if there is to be one."""
    if not figure.against:
        return row[figure.value]
    alike = {key: row[key] for key in ("variant", "device") if key in row}
    place = {**alike, **row["cell"], **figure.against}
    others = {(other[figure.value], other.get("n")) for other in rows if _has(other, place) and other.get(figure.value)}
    if len(others) > 1:
        raise BadExperiment(f"'{figure.command}' has several rows with {figure.value} where {place}.")
    if not others:
        raise NoResult(f"No row of '{figure.command}' has {figure.value} where {place}.")
    ((value, n),) = others
    if n != row.get("n"):
        raise BadExperiment(
            f"'{figure.command}' has {n} instead of {row.get('n')} boots where {place}: measure as many."
        )
    return row[figure.value] / value


def _converted(value: Any, unit: str) -> Any:
    if unit == "% more":
        return (value - 1) * 100
    if unit == "% less":
        return (1 - value) * 100
    if unit == "% gained":  # a loss is a share
        return -value * 100
    if unit == "times less":
        return 1 / value
    return value * 100 if unit == "%" else value


def _rows(output: str, name: str) -> list[PrintedRow]:
    """Of a list in what a command prints; axes of cells and medians of metrics by their names."""
    lists = json.loads(output)
    rows = lists[name] if name else next(iter(lists.values()))
    return [
        {
            **row,
            **row.get("cell", {}),
            **{name: metric["median"] for name, metric in row.get("metrics", {}).items()},
            "kernel": row["kernel"]["hash"] if isinstance(row.get("kernel"), dict) else row.get("kernel"),
        }
        for row in rows
    ]


def _has(row: PrintedRow, wanted: Mapping[str, Value | Sequence[Value]]) -> bool:
    return all(row.get(key) in ([value] if isinstance(value, Value) else value) for key, value in wanted.items())


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
    text: str
    changed: tuple[str, ...]
    """The commands of blocks, and the names of figures, that had something else before."""
    waiting: tuple[str, ...]
    """Those of which nothing was measured yet, or not all."""
    typed: int
    """How many cells of tables have a figure that no command makes, and how many marked ones no command makes yet."""


def shown(text: str, figures: Mapping[str, Figure]) -> set[str]:
    names = [found["name"] for found in _MADE.finditer(text)]
    blocks = {found["command"] for found in _MADE.finditer(text) if found["command"]}
    return blocks | {figures[name].command for name in names if name in figures}


def fill(text: str, run: Printed, figures: Mapping[str, Figure]) -> FilledDocument:
    """The document anew.

    BadExperiment for a figure that no row can have; UsageError for a comment that begins or ends no block, stands
    behind no figure, or has the name of an unknown one; and whatever a command fails with, but for NoResult.
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
        output = run(shlex.split(figure.command))
    except NoResult:
        return None
    try:
        return spell(figure, output, found["figure"])
    except NoResult:
        _require_possible(figure, _rows(output, figure.list))
        return None


def _require_possible(figure: Figure, rows: Sequence[PrintedRow]) -> None:
    """BadExperiment for a figure of which no row can be there, not even once more is measured."""
    place = {**figure.where, **figure.against}
    what, *words = shlex.split(figure.command)
    cells: list[PrintedRow] = []
    if what == "report":
        cells = [cell.as_dict() for scale in find_experiment(words[0]).scales.values() for cell in scale.cells]
        variants = place.pop("variant", ())
        for name in [variants] if isinstance(variants, Value) else variants:
            check_name(str(name))
    of_cell = {key: value for key, value in place.items() if any(key in cell for cell in cells)}
    others = ({key: value} for key, value in place.items() if key not in of_cell)
    if not (
        (figure.value in METRICS or any(figure.value in row for row in rows))
        and (not cells or any(_has(cell, of_cell) for cell in cells))
        and all(any(_has(row, each) for row in rows) for each in others)
    ):
        raise BadExperiment(f"No row of '{figure.command}' can have {figure.value} where {figure.where}.")


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

# SPDX-License-Identifier: GPL-2.0-only
"""Single figures of documents, as release/figures.toml defines them: a command of the lab, a row of it, and a value."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from foliolab.errors import BadExperiment, NoResult
from foliolab.table import Place, Text, Value, read_toml

FIGURES = "figures.toml"
"""In release/."""

_FACTORS = {"KiB": 1 / 1024, "MiB": 1 / (1 << 20), "GiB": 1 / (1 << 30), "MB": 1e-6, "million": 1e-6, "%": 100}

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
    unit: Literal["", "KiB", "MiB", "GiB", "MB", "million", "%", "% more", "% less", "% gained", "times less"] = ""
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
    place = {"variant": row["variant"], **row["cell"], **figure.against}
    others = {other[figure.value] for other in rows if _has(other, place) and other.get(figure.value)}
    if len(others) > 1:
        raise BadExperiment(f"'{figure.command}' has several rows with {figure.value} where {place}.")
    if not others:
        raise NoResult(f"No row of '{figure.command}' has {figure.value} where {place}.")
    return row[figure.value] / others.pop()


def _converted(value: Any, unit: str) -> Any:
    if unit == "% more":
        return (value - 1) * 100
    if unit == "% less":
        return (1 - value) * 100
    if unit == "% gained":  # a loss is a share
        return -value * 100
    if unit == "times less":
        return 1 / value
    return value * _FACTORS[unit] if unit else value


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

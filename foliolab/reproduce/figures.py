# SPDX-License-Identifier: GPL-2.0-only
"""Single figures of documents, as release/figures.toml defines them: a command of the lab, a row of it, and a value."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from foliolab.errors import BadExperiment, NoResult
from foliolab.table import Place, Text, Value, read_toml

FIGURES = "figures.toml"
"""In release/."""

_FACTORS = {"KiB": 1 / 1024, "MiB": 1 / (1 << 20), "GiB": 1 / (1 << 30), "MB": 1e-6, "million": 1e-6, "%": 100}

Row = dict[str, Any]


class Figure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    value: Text
    """A key of the row."""
    where: Mapping[str, Value | Sequence[Value]] = {}
    """What a row has to have; of a list one."""
    against: Mapping[str, Value] = {}
    """In what the row differs from the one by whose value its own is divided."""
    take: Literal["only", "least", "most", "farthest", "number"] = "only"
    """Of several rows: the least value, the greatest, the one farthest from 0 without its sign, or how many others."""
    unit: Literal["", "KiB", "MiB", "GiB", "MB", "million", "%", "% more", "% less", "times less", "hash"] = ""
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
    value = _value(figure, _rows(output, figure.list))
    if figure.unit == "hash":
        return f"`{value}`"
    sign = "+" if before[0] in "+-" else ""
    digits = len(before.partition(".")[2])
    return f"{round(_converted(value, figure.unit), digits) + 0.0:{sign},.{digits}f}"


def _converted(value: float, unit: str) -> float:
    if unit == "% more":
        return (value - 1) * 100
    if unit == "% less":
        return (1 - value) * 100
    return 1 / value if unit == "times less" else value * _FACTORS.get(unit, 1)


def _rows(output: str, name: str) -> list[Row]:
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


def _value(figure: Figure, rows: Sequence[Row]) -> Any:
    found = [row for row in rows if _has(row, figure.where) and row.get(figure.value) is not None]
    if not found:
        raise NoResult(f"No row of '{figure.command}' has {figure.value} where {figure.where}.")
    values = [_of(row, figure, rows) for row in found]
    if figure.take == "number":
        return len(set(values))
    if figure.take == "only" and len(set(values)) > 1:
        raise BadExperiment(f"'{figure.command}' has several rows with {figure.value} where {figure.where}.")
    if figure.take == "farthest":
        return max(map(abs, values))
    return max(values) if figure.take == "most" else min(values)


def _of(row: Row, figure: Figure, rows: Sequence[Row]) -> Any:
    if not figure.against:
        return row[figure.value]
    place = {"variant": row["variant"], **row["cell"], **figure.against}
    return row[figure.value] / _value(structs.replace(figure, where=place, against={}, take="only"), rows)


def _has(row: Row, wanted: Mapping[str, Value | Sequence[Value]]) -> bool:
    return all(row.get(key) in ([value] if isinstance(value, Value) else value) for key, value in wanted.items())

# SPDX-License-Identifier: GPL-2.0-only
"""A cell: one point on an experiment's axes, such as pattern=stride, stride=1021."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from foliolab.errors import UnknownCell
from foliolab.toml import Value

_FEW = 20
"""Cells that a complaint lists one by one."""


@dataclass(frozen=True, eq=False)
class Cell:
    """Axis values in the order in which the experiment names them, which does not tell one cell from another."""

    axes: tuple[tuple[str, Value], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.axes))

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> "Cell":
        return cls(tuple(values.items()))

    def as_dict(self) -> dict[str, Value]:
        return dict(self.axes)

    @property
    def label(self) -> str:
        """The cell in words: "random", "stride 1021", "random, threads 4"."""
        names = {name for name, _ in self.axes}
        words = []
        for position, (name, value) in enumerate(self.axes):
            if value in names:
                continue  # pattern=stride says no more than the stride axis does
            words.append(str(value) if position == 0 else f"{name} {value}")
        return ", ".join(words)

    def where(self, values: Mapping[str, Value]) -> "Cell":
        """The cell that has these values instead, and is else the same."""
        return Cell(tuple((name, values.get(name, value)) for name, value in self.axes))

    def without(self, axes: Container[str]) -> "Cell":
        """The cell that lacks these axes, and is else the same."""
        return Cell(tuple(axis for axis in self.axes if axis[0] not in axes))

    def matches(self, partial: Mapping[str, Value]) -> bool:
        """Whether every axis in ``partial`` is here, with that value."""
        mine = self.as_dict()
        return all(name in mine and mine[name] == value for name, value in partial.items())


def expand(axes: Mapping[str, Value | Sequence[Value]]) -> list[Cell]:
    """All cells of ``axes``, where a list stands for each of its values."""
    choices = [[value] if isinstance(value, (str, int)) else list(value) for value in axes.values()]
    return [Cell(tuple(zip(axes, values, strict=True))) for values in product(*choices)]


def choose(cells: Sequence[Cell], filters: Iterable[str | Cell]) -> tuple[Cell, ...]:
    """The cells that match any of ``filters``; all without any.

    A filter is "axis=value", several of these with commas, or the very cell. Raises UnknownCell for one that has none.
    """
    wanted = list(filters)
    if not wanted:
        return tuple(cells)
    chosen: set[Cell] = set()
    for each in wanted:
        matching = [cell for cell in cells if cell == each or (isinstance(each, str) and agrees(cell, each))]
        if not matching:
            raise UnknownCell(f"No cell of this experiment matches '{each}'; there are: {_known(cells)}.")
        chosen.update(matching)
    return tuple(cell for cell in cells if cell in chosen)


def common(cells: Sequence[Cell]) -> tuple[tuple[str, Value], ...]:
    """Axes on which several cells all have the same value; not the first axis, which says what a cell is."""
    if len(cells) < 2:
        return ()
    return tuple(axis for axis in cells[0].axes[1:] if all(axis in cell.axes for cell in cells))


def _known(cells: Sequence[Cell]) -> str:
    """What there is to choose from: few cells one by one, many by their axes."""
    if len(cells) <= _FEW:
        return "; ".join(",".join(f"{name}={value}" for name, value in cell.axes) for cell in cells)
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, value in cell.axes:
            values.setdefault(name, {})[str(value)] = None
    return "; ".join(f"{name}={'|'.join(known)}" for name, known in values.items()) + ", though not all together"


def agrees(cell: Cell, text: str) -> bool:
    """Whether the cell has all of "axis=value", several of these with commas."""
    mine = {name: str(value) for name, value in cell.axes}
    wanted = [part.partition("=") for part in text.split(",")]
    return all(equals and mine.get(name.strip()) == value.strip() for name, equals, value in wanted)

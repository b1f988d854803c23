# SPDX-License-Identifier: GPL-2.0-only
"""What disks and cells are called where readers know no experiment."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from foliolab.experiment.cell import Cell
from foliolab.toml import Place, Text, read_toml

_FILE = Path(__file__).with_suffix(".toml")
_SHARED = ("read_ahead_kb", "hint", "times")
"""Axes that no title tells."""


class _Titles(Struct, frozen=True, forbid_unknown_fields=True):
    devices: Mapping[str, Text]
    cells: Mapping[str, Mapping[str, Text]]
    """By experiment and label."""


@cache
def titles() -> _Titles:
    return Place(_FILE).convert(read_toml(_FILE), _Titles)


def titles_of(experiment: str, cells: Sequence[Cell]) -> tuple[str, ...]:
    """The title of each, or its label if it has none; the labels of all where some would share a title."""
    known = titles().cells.get(experiment, {})
    titled = tuple(known.get(cell.without(_SHARED).label, cell.label) for cell in cells)
    return titled if len(set(titled)) == len(titled) else tuple(cell.label for cell in cells)


def device_title(device: str) -> str:
    """The disk's title, or its name if it has none."""
    return titles().devices.get(device, device)

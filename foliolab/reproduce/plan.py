# SPDX-License-Identifier: GPL-2.0-only
"""What is behind the figures of README and docs, as release/plan.toml says it."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from foliolab.arch import NATIVE
from foliolab.errors import BadExperiment, UsageError
from foliolab.experiment.machine import MACHINES
from foliolab.paths import RELEASE

PLAN = RELEASE / "plan.toml"


@dataclass(frozen=True)
class Part:
    """An experiment as documents show it, or another command of the lab."""

    name: str
    shown: tuple[str, ...]
    """The documents, with their sections."""
    hours: float
    """What it takes on two processors, by emulation; only an estimate, for where no sample says more."""
    quick: bool = False
    """Whether it belongs to a day's work."""
    command: tuple[str, ...] = ()
    """Of the lab, instead of an experiment."""
    experiment: str = ""
    scale: str = "quick"
    variants: tuple[str, ...] = ()
    """None are the scale's own."""
    kernels: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    """As on the command line: "axis=value", joined by commas."""
    machine: str = f"{NATIVE.name}-4k"
    backend: str = "qemu"
    n: int = 1
    """Boots, or runs, of each cell."""

    @property
    def arch(self) -> str:
        return self.machine.rpartition("-")[0]

    @property
    def page_size(self) -> int:
        """Bytes."""
        return int(self.machine.rpartition("-")[2].removesuffix("k")) << 10


def load_plan(file: Path = PLAN) -> list[Part]:
    """All parts in their order; BadExperiment for a mistake in the file."""
    try:
        entries = tomllib.loads(file.read_text())["part"]
    except (OSError, ValueError, KeyError) as error:
        raise BadExperiment(f"{file} is no plan: {error}.") from None
    parts = [_part(file, entry) for entry in entries]
    if twice := {part.name for part in parts if [each.name for each in parts].count(part.name) > 1}:
        raise BadExperiment(f"{file} has two parts with the name '{min(twice)}'.")
    return parts


def _part(file: Path, entry: dict[str, Any]) -> Part:
    values: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in entry.items()}
    try:
        part = Part(**values)
    except TypeError:
        known = ", ".join(field.name for field in fields(Part))
        name = entry.get("name", "without a name")
        raise BadExperiment(f"{file}: part {name} lacks a key, or has one that is none of {known}.") from None
    if bool(part.command) == bool(part.experiment):
        raise BadExperiment(f"{file}: part '{part.name}' has to have either a command or an experiment.")
    if part.machine not in MACHINES:
        raise BadExperiment(f"{file}: part '{part.name}' is for '{part.machine}', not one of {', '.join(MACHINES)}.")
    return part


def choose_parts(parts: Sequence[Part], names: Sequence[str], *, quick: bool) -> list[Part]:
    """The parts of these names, or all, or the quick ones; UsageError for a name that is not there."""
    for name in names:
        if all(part.name != name for part in parts):
            raise UsageError(f"There is no part '{name}'; known: {', '.join(part.name for part in parts)}.")
    return [part for part in parts if (part.name in names or not names) and (part.quick or not quick)]

# SPDX-License-Identifier: GPL-2.0-only
"""What is behind the figures of README and docs, as release/plan.toml says it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from foliolab.arch import MACHINES, NATIVE
from foliolab.errors import require_known
from foliolab.files import RELEASE
from foliolab.table import Number, Place, Positive, Text, Texts, read_toml

PLAN = RELEASE / "plan.toml"


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An experiment as documents show it, or another command of the lab."""

    name: Text
    shown: Texts
    """The documents, with their sections."""
    hours: Number
    """What it takes on two processors, by emulation; only an estimate, for where no sample says more."""
    quick: bool = False
    """Whether it belongs to a day's work."""
    command: Texts = ()
    """Of the lab, instead of an experiment."""
    experiment: str = ""
    scale: Text = "quick"
    variants: Texts = ()
    """None are the scale's own."""
    again: str = ""
    """Which of the variants is measured twice, to be compared with itself."""
    kernels: Texts = ()
    cells: Texts = ()
    """As on the command line: "axis=value", joined by commas."""
    machine: Text = f"{NATIVE.name}-4k"
    backend: Literal["qemu", "model"] = "qemu"
    n: Positive = 1
    """Boots, or runs, of each cell."""

    @property
    def arch(self) -> str:
        return self.machine.rpartition("-")[0]

    @property
    def page_size(self) -> int:
        """Bytes."""
        return int(self.machine.rpartition("-")[2].removesuffix("k")) << 10


class _Plan(Struct, forbid_unknown_fields=True):
    part: Annotated[list[Any], Meta(min_length=1)]


def load_plan(file: Path = PLAN) -> list[Part]:
    """All parts in their order; BadExperiment for a mistake in the file."""
    top = Place(file)
    parts: list[Part] = []
    for number, content in enumerate(top.convert(read_toml(file), _Plan).part):
        place = top.at(f"part[{number}]")
        part = place.convert(content, Part)
        if bool(part.command) == bool(part.experiment):
            place.fail("has to have either a command or an experiment")
        if part.again and part.again not in part.variants:
            place.at("again").fail(f"is '{part.again}', which is none of the variants")
        place.at("machine").all_of([part.machine], MACHINES)
        if part.name in (before.name for before in parts):
            place.at("name").fail(f"is '{part.name}', as that of another part")
        parts.append(part)
    return parts


def choose_parts(parts: Sequence[Part], names: Sequence[str], *, quick: bool) -> list[Part]:
    """The parts of these names, or all, or the quick ones; UsageError for a name that is not there."""
    require_known("There is no part", names, (part.name for part in parts))
    return [part for part in parts if (part.name in names or not names) and (part.quick or not quick)]


def documents(parts: Iterable[Part]) -> list[str]:
    """The files that show parts, each once, by their names in the repository."""
    return list(dict.fromkeys(place.partition("#")[0] for part in parts for place in part.shown))

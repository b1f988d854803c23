# SPDX-License-Identifier: GPL-2.0-only
"""Variants: which kernel, and how its switches stand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import UnknownVariant, UsageError
from foliolab.experiment.cell import Value
from foliolab.experiment.machine import MACHINES, applies
from foliolab.experiment.table import Table, read_toml
from foliolab.paths import EXPERIMENTS

FLAVOURS = ("patched", "unpatched")


@dataclass(frozen=True)
class Variant:
    name: str
    flavour: str
    """The kernel it runs on: "patched" or "unpatched"."""
    description: str
    switches: tuple[tuple[str, Value], ...]
    """Files and what to write to them; empty: leave all as booted.

    A name is a path below /sys/kernel/mm/, or a whole path below /sys/kernel/debug/.
    """
    machines: tuple[str, ...] = ()
    """That have what it sets; empty: all."""

    def obstacle(self, machine: str) -> str:
        """Why it cannot be had on ``machine``, as a sentence; empty if it can."""
        return "" if applies(self.machines, machine) else f"'{self.name}' is for {', '.join(self.machines)} only."


def load_variants(file: Path = EXPERIMENTS / "variants.toml") -> dict[str, Variant]:
    """All variants by name, in the file's order."""
    top = read_toml(file)
    variants: dict[str, Variant] = {}
    for name in top.keys:
        variants[name] = _variant(name, top.table(name), variants)
    return variants


def _variant(name: str, table: Table, before: Mapping[str, Variant]) -> Variant:
    like = _like(table, before) if "like" in table else None
    flavour = like.flavour if like else table.text("kernel")
    if flavour not in FLAVOURS:
        table.fail("kernel", f"has to be one of {', '.join(FLAVOURS)}")
    description = table.text("description")
    switches: dict[str, Value] = dict(like.switches) if like else {}
    if "switches" in table:
        if flavour == "unpatched":
            table.fail("switches", "cannot be: an unpatched kernel has none")
        inner = table.table("switches")
        switches |= _switches(inner)
    machines = table.texts("machines") if "machines" in table else like.machines if like else ()
    for machine in machines:
        if machine not in MACHINES:
            table.fail("machines", f"names '{machine}', which is not one of {', '.join(MACHINES)}")
    table.finish()
    return Variant(name, flavour, description, tuple(switches.items()), machines)


def _like(table: Table, before: Mapping[str, Variant]) -> Variant:
    """The variant whose kernel, switches and machines another one starts from."""
    name = table.text("like")
    if name not in before:
        table.fail("like", f"is '{name}', which is no variant above it")
    return before[name]


def _switches(table: Table) -> dict[str, Value]:
    for name in table.keys:
        if ".." in name.split("/") or (name.startswith("/") and not name.startswith("/sys/kernel/debug/")):
            table.fail(name, "is not the name of a file below /sys/kernel/mm/, nor a path below /sys/kernel/debug/")
    return table.scalars()


def choose(names: Iterable[str], known: Mapping[str, Variant]) -> tuple[Variant, ...]:
    """The variants of these names, each once; UnknownVariant for a name that is not there."""
    chosen = []
    for name in dict.fromkeys(names):
        if name not in known:
            raise UnknownVariant(f"There is no variant '{name}'; known: {', '.join(known)}.")
        chosen.append(known[name])
    return tuple(chosen)


def choose_one(name: str, machine: str) -> Variant:
    """The variant of the lab of this name; UsageError if ``machine`` cannot have it."""
    (variant,) = choose([name], load_variants())
    if obstacle := variant.obstacle(machine):
        raise UsageError(obstacle)
    return variant

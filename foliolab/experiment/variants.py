# SPDX-License-Identifier: GPL-2.0-only
"""Variants: which kernel, and how its switches stand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import UnknownVariant
from foliolab.experiment.table import Table, read_toml
from foliolab.paths import EXPERIMENTS

FLAVOURS = ("patched", "unpatched")


@dataclass(frozen=True)
class Variant:
    name: str
    flavour: str
    """The kernel it runs on: "patched" or "unpatched"."""
    description: str
    switches: tuple[tuple[str, int], ...]
    """Files below /sys/kernel/mm/mmap_readahead/ and what to write to them; empty: leave all as booted."""


def load_variants(file: Path = EXPERIMENTS / "variants.toml") -> dict[str, Variant]:
    """All variants by name, in the file's order."""
    top = read_toml(file)
    return {name: _variant(name, top.table(name)) for name in top.keys}


def _variant(name: str, table: Table) -> Variant:
    flavour = table.text("kernel")
    if flavour not in FLAVOURS:
        table.fail("kernel", f"has to be one of {', '.join(FLAVOURS)}")
    description = table.text("description")
    switches: list[tuple[str, int]] = []
    if "switches" in table:
        if flavour == "unpatched":
            table.fail("switches", "cannot be: an unpatched kernel has none")
        inner = table.table("switches")
        switches = [(switch, inner.integer(switch)) for switch in inner.keys]
    table.finish()
    return Variant(name, flavour, description, tuple(switches))


def choose(names: Iterable[str], known: Mapping[str, Variant]) -> tuple[Variant, ...]:
    """The variants of these names, each once; UnknownVariant for a name that is not there."""
    chosen = []
    for name in dict.fromkeys(names):
        if name not in known:
            raise UnknownVariant(f"There is no variant '{name}'; known: {', '.join(known)}.")
        chosen.append(known[name])
    return tuple(chosen)

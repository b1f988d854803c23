# SPDX-License-Identifier: GPL-2.0-only
"""Variants: which kernel, and how its switches stand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from foliolab.arch import MACHINES, applies
from foliolab.errors import UnknownKernel, UnknownVariant, UsageError, require_known
from foliolab.files import EXPERIMENTS
from foliolab.kernel.name import OURS, PATCHED, UNPATCHED, KernelName, parse_name
from foliolab.toml import Place, Text, Texts, Value, read_toml


@dataclass(frozen=True)
class Variant:
    name: str
    kernel: str
    switches: tuple[tuple[str, Value], ...]
    """Files and what to write to them; empty: leave all as booted.

    A name is a path below /sys/kernel/mm/, or a whole path below /sys/kernel/debug/.
    """
    machines: tuple[str, ...] = ()
    """That have what it sets; empty: all."""
    ours: bool = True
    """Whether it takes a kernel with our code; the others are kernels as they boot, or with switches of Linux's own."""
    again: bool = False
    """Whether it is measured a second time, in boots of its own."""

    @property
    def boot(self) -> tuple[str, bool, bool]:
        """What those have in common that may share boots. One that sets no switch takes a kernel as booted."""
        return self.kernel, bool(self.switches), self.again

    def obstacle(self, machine: str) -> str:
        """Why it cannot be had on ``machine``, as a sentence; empty if it can."""
        return "" if applies(self.machines, machine) else f"'{self.name}' is for {', '.join(self.machines)} only."

    def lacking(self, ours: bool) -> str:
        """What its kernel has not, as a sentence; ``ours`` says whether that has our code."""
        return f"'{self.name}' takes our code, which that kernel has not." if self.ours and not ours else ""


class _Table(Struct, forbid_unknown_fields=True):
    """A variant as a file has it."""

    description: Text
    """For who reads the file."""
    kernel: Literal["patched", "unpatched", "image:debian:6.12", "image:debian:6.12+module"] | None = None
    like: Text | None = None
    """The variant whose kernel, switches and machines it starts from."""
    switches: dict[str, Any] = {}
    machines: Texts = ()


def load_variants(file: Path = EXPERIMENTS / "variants.toml") -> dict[str, Variant]:
    """All variants by name, in the file's order."""
    variants: dict[str, Variant] = {}
    for name, content in read_toml(file).items():
        place = Place(file, name)
        variants[name] = _variant(name, place, place.convert(content, _Table), variants)
    return variants


def _variant(name: str, place: Place, table: _Table, before: Mapping[str, Variant]) -> Variant:
    if table.like and table.like not in before:
        place.at("like").fail(f"is '{table.like}', which is no variant above it")
    if bool(table.like) is bool(table.kernel):
        place.at("kernel").fail("is that of 'like'" if table.like else "is missing, and 'like' as well")
    like = before[table.like] if table.like else None
    kernel = like.kernel if like else str(table.kernel)
    if kernel not in (PATCHED, UNPATCHED) and table.switches:
        place.at("switches").fail(f"cannot be: only the {PATCHED} and the {UNPATCHED} kernel have some")
    inner = place.at("switches")
    for switch in table.switches:
        if ".." in switch.split("/") or (switch.startswith("/") and not switch.startswith("/sys/kernel/debug/")):
            inner.at(switch).fail(
                "is not the name of a file below /sys/kernel/mm/, nor a path below /sys/kernel/debug/"
            )
    switches = {**dict(like.switches if like else ()), **inner.scalars(table.switches)}
    machines = place.at("machines").all_of(table.machines, MACHINES) or (like.machines if like else ())
    return Variant(name, kernel, tuple(switches.items()), machines, ours=kernel == PATCHED)


def choose(names: Iterable[str], known: Mapping[str, Variant]) -> tuple[Variant, ...]:
    """The variants of these names, each once; UnknownVariant for a name that is not there."""
    chosen = list(dict.fromkeys(names))
    require_known("There is no variant", chosen, known, UnknownVariant)
    return tuple(known[name] for name in chosen)


def on_kernels(variants: Sequence[Variant], kernels: Iterable[str], *, asked: bool) -> tuple[Variant, ...]:
    """The variants on each of these kernels.

    A kernel that has our series by its name has the variants of ours, any other one is as it boots, or has switches
    of Linux's own. Those that were ``asked`` for are there all the same: whether a kernel has what they take is known
    when it is built.
    """
    chosen: dict[str, Variant] = {}
    for kernel in map(parse_name, kernels):
        ours = OURS in kernel.series
        found = [
            replace(variant, name=_on(variant, kernel), kernel=kernel.text)
            if variant.ours or variant.switches
            else _as_booted(kernel)
            for variant in variants
            if variant.ours is ours or (variant.ours and asked)
        ]
        chosen |= {variant.name: variant for variant in found or [_as_booted(kernel)]}
    return tuple(chosen.values())


def _on(variant: Variant, kernel: KernelName) -> str:
    return variant.name if kernel.text == variant.kernel else f"{variant.name} on {kernel.text}"


def _as_booted(kernel: KernelName) -> Variant:
    return Variant(kernel.text, kernel.text, (), ours=False)


def check_name(name: str) -> None:
    """Raise UnknownVariant for what no sample has as its variant, of whatever kernel."""
    variant, on, kernel = first_name(name).partition(" on ")
    try:
        if on or variant not in load_variants():
            parse_name(kernel if on else variant)
    except UnknownKernel as error:
        raise UnknownVariant(f"'{name}' is neither a variant nor a kernel. {error}") from None
    if on:
        choose([variant], load_variants())


def again_name(name: str) -> str:
    """What a variant is called where it is measured a second time, which no variant of a file can be."""
    return f"{name} again"


def first_name(name: str) -> str:
    """The inverse of ``again_name``; other names stay."""
    return name.removesuffix(again_name(""))


def again(variant: Variant) -> Variant:
    """The same once more, for boots of its own: whatever differs from the first is chance."""
    return replace(variant, name=again_name(variant.name), again=True)


def choose_one(name: str, machine: str) -> Variant:
    """The variant of the lab of this name; UsageError if ``machine`` cannot have it."""
    (variant,) = choose([name], load_variants())
    if obstacle := variant.obstacle(machine):
        raise UsageError(obstacle)
    return variant

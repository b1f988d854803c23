# SPDX-License-Identifier: GPL-2.0-only
"""Kernel configurations: fragments over allnoconfig, checked against what came out."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from foliolab.arch import Architecture, size_name
from foliolab.errors import ConfigError
from foliolab.files import KERNEL
from foliolab.toml import Place, Text, read_toml

PROFILES = ("lab", "debug", "host", "metal")
"""lab: what experiments run on. debug: with KASAN, lockdep, DEBUG_VM and KUnit. host: with what virtme-ng and the
host's own programs need. metal: with what a machine needs that is no guest, of which only x86_64 is known."""
OPTIONAL = tuple(sorted(fragment.stem for fragment in (KERNEL / "config/optional").glob("*.config")))
"""What a kernel has only if it is asked for, because it takes long to build."""

SPECIAL = KERNEL / "config/options.toml"


_NAME = re.compile(r"CONFIG_\w+")


class Special(Struct, forbid_unknown_fields=True):
    """An option that not every kernel has."""

    since: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+$")] | None = None
    """The first version that has it no more, or not by itself."""
    instead: dict[str, Text] = {}
    """Options and values that stand for it from then on."""
    ours: bool = False
    """Whether only kernels with our code have it."""


def merge(
    arch: Architecture, page_size: int, profile: str, extras: Iterable[str], *, version: str, label: str, ours: bool
) -> str:
    """The text of all fragments for Linux ``version``, one line for each option; later fragments win.

    ``label`` becomes a part of the release; ``ours`` says whether the source has our code.
    """
    names = ["common", arch.name]
    if len(arch.page_sizes) > 1:
        names.append(f"{arch.name}-{size_name(page_size)}")
    if profile != "lab":
        names.append(profile)
    names += [f"optional/{extra}" for extra in extras]
    options = {"CONFIG_LOCALVERSION": f'"-foliolab-{label}"'}
    for name in names:
        options |= parse((KERNEL / "config" / f"{name}.config").read_text())
    return text(known(options, version, ours))


def known(options: Mapping[str, str], version: str, ours: bool) -> dict[str, str]:
    """The options as Linux ``version`` has them; ``ours`` says whether the source has our code."""
    special = read_special()
    there = {}
    for name, value in options.items():
        entry = special.get(name, Special())
        if entry.ours and not ours:
            continue
        if not entry.since or numbers(version) < numbers(entry.since):
            there[name] = value
        elif value != "n":
            there |= entry.instead
    return there


def read_special(file: Path = SPECIAL) -> dict[str, Special]:
    """The options that not every kernel has, by name; BadExperiment for a mistake in the file."""
    special = {}
    for name, content in read_toml(file).items():
        place = Place(file, name)
        special[name] = place.convert(content, Special)
        for option in (name, *special[name].instead):
            if not _NAME.fullmatch(option):
                place.fail(f"names '{option}', which is not the name of an option")
    return special


def numbers(version: str) -> tuple[int, ...]:
    """Major and minor version."""
    return tuple(map(int, version.split(".")[:2]))


def line(name: str, value: str) -> str:
    """One option as .config spells it."""
    return f"# {name} is not set" if value == "n" else f"{name}={value}"


def text(options: Mapping[str, str]) -> str:
    """A fragment, one line for each option."""
    return "".join(line(name, value) + "\n" for name, value in options.items())


def parse(text: str) -> dict[str, str]:
    """Options and values of a fragment or a .config; "is not set" reads as n."""
    options = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE))
    for name in re.findall(r"^# (CONFIG_\w+) is not set$", text, re.MULTILINE):
        options[name] = "n"
    return options


def check(wanted: str, final: str) -> None:
    """Raise ConfigError if the final .config lacks anything that the fragments ask for."""
    got = parse(final)
    missing = [line(name, value) for name, value in parse(wanted).items() if got.get(name, "n") != value]
    if missing:
        raise ConfigError(
            f"The kernel's configuration does not hold what the fragments ask for: {', '.join(missing)}. "
            "An option that it depends on is missing, or this kernel does not have it."
        )

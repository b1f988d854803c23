# SPDX-License-Identifier: GPL-2.0-only
"""Which of the kernel's mm selftests are run, as kernel/kselftests.toml says it."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from foliolab.arch import ARCHITECTURES
from foliolab.errors import UsageError
from foliolab.files import KERNEL
from foliolab.table import Count, Place, Positive, one_of, read_toml

HUGE_PAGES = "/proc/sys/vm/nr_hugepages"


class Test(Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a test program, in a guest of its own."""

    command: Annotated[str, Meta(pattern=r"\S")]
    seconds: Positive = 180
    """It may take, on a real machine; the selftests' own limit."""
    huge_mib: Count = 256
    """Of huge pages, if the guest can have them; what run_vmtests.sh reserves."""
    settings: tuple[tuple[str, str], ...] = ()
    """Files of the guest, and what to write to them first."""
    nodes: Positive = 1
    """NUMA nodes of the guest."""
    cpus: Positive = 2
    libraries: tuple[str, ...] = ()
    """From Debian's packages lib...-dev."""
    arches: tuple[Annotated[str, one_of(ARCHITECTURES)], ...] = tuple(ARCHITECTURES)

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(self.command.split())

    @property
    def program(self) -> str:
        return self.argv[0]


class Selftests(Struct, frozen=True, forbid_unknown_fields=True):
    tests: tuple[Test, ...]
    left_out: dict[str, str]
    """Programs of the directory that are not run, and why."""


@cache
def selftests(file: Path = KERNEL / "kselftests.toml") -> Selftests:
    """All of them; BadExperiment for a mistake in the file."""
    top = Place(file)
    found = top.convert(read_toml(file), Selftests)
    commands = [test.command for test in found.tests]
    for number, command in enumerate(commands):
        if command in commands[:number]:
            top.at(f"tests[{number}].command").fail(f"is '{command}' a second time")
    return found


def chosen(names: Iterable[str], arch: str) -> list[Test]:
    """The tests of these programs, or commands, on an architecture; all of them without names."""
    tests = [test for test in selftests().tests if arch in test.arches]
    names = list(names)
    for name in names:
        if not any(name in (test.program, test.command) for test in tests):
            known = ", ".join(dict.fromkeys(test.program for test in tests))
            raise UsageError(f"There is no selftest '{name}' for {arch}; known: {known}.")
    return [test for test in tests if not names or test.program in names or test.command in names]

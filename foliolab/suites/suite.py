# SPDX-License-Identifier: GPL-2.0-only
"""What a suite of tests of others is, and how one of its tests is run on a kernel."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from foliolab.errors import UsageError
from foliolab.files import KERNEL, digest, results_directory
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.name import stem
from foliolab.suites.ktap import End
from foliolab.suites.result import Result, boot_for, kept
from foliolab.vm.accel import Accelerator, choose
from foliolab.vm.guest import Guest, GuestConfig, OnOutput
from foliolab.vm.outcome import JobResult

SUITES = KERNEL / "suites.toml"


@dataclass(frozen=True)
class SuiteOptions:
    """What the command line asks of a suite; None where it says nothing."""

    tests: tuple[str, ...] = ()
    """Names of tests or programs; empty for all."""
    source: Path | None = None
    seconds: int | None = None
    seed: int | None = None

    def refuse(self, suite: str, *options: str) -> None:
        """UsageError if one of these is given, which the suite does not take."""
        for option in options:
            if getattr(self, option) is not None:
                raise UsageError(f"--suite {suite} takes no --{option}.")


@dataclass(frozen=True)
class Call:
    """One test of a suite: a program's call, in a guest of its own."""

    command: str
    """As its log tells it."""
    key: tuple[str | bytes, ...]
    """All that decides how it ends, beside the kernel and how that is booted."""
    guest: Callable[[BuiltKernel, Accelerator], GuestConfig]
    """The guest for a kernel, with its disks made."""
    perform: Callable[[Guest, OnOutput], JobResult]
    """Run it in its guest, which has just booted."""
    group: str = ""
    """The row of a table that it is counted in, if not its own."""


@dataclass(frozen=True)
class ForeignSuite:
    """A suite with the tests of it that are to be run, fetched and compiled for an architecture."""

    title: str
    """With a place for the kernel's {version}, if it says that."""
    place: str
    """The directory below the results, where outcomes are kept."""
    layout: str
    """To be raised when the same test on the same kernel is to be run again: another guest, another reading."""
    calls: Mapping[str, Call]
    """By name."""
    parse: Callable[[str], dict[str, End]]
    """The subtests in what a test has printed."""
    skipped: int
    """The exit status of a test that this kernel or machine cannot run."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """What is not run of the suite, and why."""
    what: str = ""
    """What count() counts, if anything."""
    count: Callable[[str], int] = len

    def run(self, name: str, kernel: BuiltKernel, boot: int = 1, *, again: bool = False) -> Result:
        """The result of one test on one kernel: of a boot, or what an earlier one has left in the results directory."""
        call, accelerator = self.calls[name], choose(kernel.arch)
        key = digest([self.layout, kernel.hash, accelerator.backend, *call.key])
        file = "_".join(name.split()).replace("/", "_")
        place = results_directory() / self.place / f"{stem(kernel.name)}-{file}-{key}-{boot}.json"

        def boot_once(log: Path) -> dict[str, str]:
            printed = {1: bytearray(), 2: bytearray()}
            config = call.guest(kernel, accelerator)

            def perform(guest: Guest) -> JobResult:
                return call.perform(guest, lambda stream, data: printed[stream].extend(data))

            return boot_for(call.command, config, log, perform, printed.values(), self.skipped)

        return kept(place, boot_once, self.parse, again=again)


def chosen(tests: Mapping[str, str], names: Collection[str], whose: str) -> list[str]:
    """Those of ``tests`` that have these names, or programs; all of them without names.

    ``tests`` has the program of each. UsageError for a name that is none.
    """
    programs = dict.fromkeys(tests.values())
    for name in names:
        if name not in tests and name not in programs:
            raise UsageError(f"There is no test '{name}' in {whose}; known: {', '.join(programs)}.")
    return [test for test, program in tests.items() if not names or test in names or program in names]

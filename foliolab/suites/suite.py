# SPDX-License-Identifier: GPL-2.0-only
"""What a suite of tests of others is, and how one of its tests is run on a kernel."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from foliolab.errors import HostLost, NoResult, UsageError
from foliolab.files import KERNEL, digest, results_directory, write_atomic
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.name import stem
from foliolab.progress import working
from foliolab.suites.ktap import End
from foliolab.suites.result import EXIT_STATUS, KERNEL_LOG, Result, Results, compared
from foliolab.vm.accel import Accelerator, choose
from foliolab.vm.guest import Guest, GuestConfig, OnOutput
from foliolab.vm.outcome import GuestFailure, JobResult, complaints, short_of_time, splats

SUITES = KERNEL / "suites.toml"


@dataclass(frozen=True)
class SuiteOptions:
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

    def run(self, name: str, kernel: BuiltKernel, boot: int = 1) -> Result:
        """The result of one test on one kernel: of a boot, or what an earlier one has left in the results directory."""
        call, accelerator = self.calls[name], choose(kernel.arch)
        key = digest([self.layout, kernel.hash, accelerator.backend, *call.key])
        file = "_".join(name.split()).replace("/", "_")
        place = results_directory() / self.place / f"{stem(kernel.name)}-{file}-{key}-{boot}.json"

        log = place.with_suffix(".log")
        if not place.exists():
            write_atomic(place, json.dumps(self._boot(call, call.guest(kernel, accelerator), log)))
        facts = json.loads(place.read_text())
        output = facts.pop("output")
        told = {name: facts.pop(name, "") for name in ("remark", "died", "complaint")}
        return Result(self.parse(output) | {name: End(value) for name, value in facts.items()}, log, **told)

    def _boot(self, call: Call, config: GuestConfig, log: Path) -> dict[str, str]:
        """Have a guest perform a test, and leave all that was said in ``log``.

        Returns what the test printed, and the verdicts on its exit status and on the kernel's log. "remark" is what was
        odd but is no failure, "died" how the guest died, and "complaint" the kernel's first complaint; each may be
        empty.
        """
        console, died = log.with_suffix(".console"), ""
        printed = {1: bytearray(), 2: bytearray()}
        try:
            with Guest(config, console) as guest:
                done = call.perform(guest, lambda stream, data: printed[stream].extend(data))
                how = f"signal {done.signal}" if done.signal else f"exit status {done.status}"
                ending = End.SKIP if done.status == self.skipped else End.FAIL
                ending = ending if done.status or done.signal else End.PASS
        except GuestFailure as failure:
            if isinstance(failure, HostLost | NoResult):  # nothing that the kernel is to blame for
                raise
            how = died = str(failure)
            ending = End.FAIL
        words = console.read_text(errors="replace")
        console.unlink()
        titles, real_time = splats(words), config.accelerator.real_time
        bad = complaints(titles, real_time=real_time)
        write_atomic(log, b"\n".join([f"{call.command}: {how}".encode(), *printed.values(), words.encode()]))
        return {
            "output": printed[1].decode(errors="replace"),
            EXIT_STATUS: ending,
            KERNEL_LOG: End.FAIL if bad else End.PASS,
            "remark": short_of_time(titles, real_time=real_time),
            "died": died,
            "complaint": bad[0] if bad else "",
        }

    def run_all(self, what: str, kernels: Sequence[BuiltKernel]) -> Results:
        """Run every test on every kernel; ``what`` names them in the progress report."""
        results = {}
        with working(f"running {what}", len(self.calls) * len(kernels)) as task:

            def one(name: str, kernel: BuiltKernel, boot: int) -> Result:
                task.note(f"{name}, {kernel.name}")
                return self.run(name, kernel, boot)

            for name in self.calls:
                results[name] = compared(kernels, partial(one, name))
                task.advance(len(kernels))
        return results


def chosen(tests: Mapping[str, str], names: Collection[str], whose: str) -> list[str]:
    """Those of ``tests`` that have these names, or programs; all of them without names.

    ``tests`` has the program of each. UsageError for a name that is none.
    """
    programs = dict.fromkeys(tests.values())
    for name in names:
        if name not in tests and name not in programs:
            raise UsageError(f"There is no test '{name}' in {whose}; known: {', '.join(programs)}.")
    return [test for test, program in tests.items() if not names or test in names or program in names]

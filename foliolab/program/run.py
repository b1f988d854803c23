# SPDX-License-Identifier: GPL-2.0-only
"""Run a program of the user's in one guest after another, cell by cell."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foliolab.campaign.sample import KernelFacts
from foliolab.kernel import module
from foliolab.kernel.built import BuiltKernel
from foliolab.program.cells import ProgramCell
from foliolab.program.record import Run
from foliolab.vm.disk import Filesystem
from foliolab.vm.guest import Disk, Guest, GuestConfig, OnOutput
from foliolab.vm.outcome import OutcomeKind, complaints, short_of_time, splats
from foliolab.vm.switches import Switches, require_module

_COUNTERS = "/counters"
_ROOT = "/root"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Mounted:
    """A disk with what a program is to find on it."""

    use: str
    """data or root: where it is mounted, and what its counters are called."""
    disk: Disk
    filesystem: Filesystem


@dataclass(frozen=True)
class Input:
    """What the program reads from its standard input, on a disk that need not be filled by it."""

    disk: Disk
    size_bytes: int


@dataclass(frozen=True)
class Program:
    """What is run, and where."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    deadline_seconds: float | None
    """Of each cell, on a real machine."""
    mounted: tuple[Mounted, ...]
    input: Input | None

    @property
    def disks(self) -> tuple[Disk, ...]:
        return (*(each.disk for each in self.mounted), *([self.input.disk] if self.input else []))

    @property
    def names(self) -> dict[str, str]:
        """Of the mounted disks in the guest, by their use."""
        return {each.use: f"vd{chr(ord('a') + number)}" for number, each in enumerate(self.mounted)}

    @property
    def whole_environment(self) -> dict[str, str]:
        """With a search path for programs."""
        return {"PATH": _PATH, **self.environment}

    def mount(self, guest: Guest) -> None:
        """Mount its disks in a guest that has them."""
        for each in self.mounted:
            place = _ROOT if each.use == "root" else f"/{each.use}"
            guest.run([":mount", f"/dev/{self.names[each.use]}", place, each.filesystem]).checked()

    @property
    def command(self) -> list[str]:
        """That runs it in the guest, after dropped caches and with counters."""
        argv = ["/bin/measure", "--counters", _COUNTERS]
        for name in self.names.values():
            argv += ["--disk", name]
        if "root" in self.names:
            argv += ["--root", _ROOT]
        if self.input:
            argv += ["--input", f"/dev/vd{chr(ord('a') + len(self.mounted))}"]
            argv += ["--input-bytes", str(self.input.size_bytes)]
        return [*argv, "--", *self.argv]


def run_boot(
    program: Program,
    kernel: BuiltKernel,
    config: GuestConfig,
    cells: Sequence[ProgramCell],
    console: Path,
    *,
    after: Callable[[Run], None],
    before: Callable[[ProgramCell], None] = lambda cell: None,
    on_output: OnOutput | None = None,
) -> None:
    """Run the program in every cell of one boot, in order; ``console`` gets the guest's log.

    ``before`` and ``after`` are called at each cell. The guest ends cleanly: what was written to
    disks that keep it is whole. GuestFailure if the guest itself fails, DiskFull if there was no room.
    """
    with Guest(replace(config, kernel=kernel.image, disks=program.disks, kernel_name=kernel.name), console) as guest:
        switches = Switches(guest)
        real_time = config.accelerator.real_time
        program.mount(guest)
        if kernel.module:
            require_module(guest, module.NAME)
        seen = 0
        for cell in cells:
            before(cell)
            switches.set(cell.variant.switches)
            limit = _limit(guest, program, cell.read_ahead_kb)
            environment = program.whole_environment
            job = guest.run(program.command, program.deadline_seconds, env=environment, on_output=on_output)
            counts = _counts(guest, program)
            titles = splats(guest.console())
            new, seen = titles[seen:], len(titles)
            warnings, remark = complaints(new, real_time=real_time), short_of_time(new, real_time=real_time)
            job = replace(job, argv=program.argv)
            after(Run(cell, limit, KernelFacts.of(kernel), job, counts, warnings, remark))
        guest.power_off()


def _limit(guest: Guest, program: Program, read_ahead_kb: int | None) -> int | None:
    """Set the readahead limit of all disks; returns what the first has then."""
    files = [f"/sys/block/{name}/queue/read_ahead_kb" for name in program.names.values()]
    if read_ahead_kb is not None:
        for file in files:
            guest.run([":write", file, str(read_ahead_kb)]).checked()
    return int(guest.run([":read", files[0]]).checked().stdout) if files else None


def _counts(guest: Guest, program: Program) -> dict[str, Any]:
    """What was counted, or nothing if the counting itself was killed."""
    text = guest.run([":read", _COUNTERS])
    if text.outcome.kind is not OutcomeKind.OK or not text.stdout.strip():
        return {}
    counts: dict[str, Any] = json.loads(text.stdout)
    counts["disks"] = {use: counts["disks"][name] for use, name in program.names.items()}
    return counts

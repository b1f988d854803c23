# SPDX-License-Identifier: GPL-2.0-only
"""Run a program of the user's in one guest after another, cell by cell, and say of each run what it came to."""

import json
import os
import select
import shutil
import stat
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from foliolab.arch import Architecture
from foliolab.campaign.sample import KernelFacts
from foliolab.errors import UsageError
from foliolab.experiment.variants import Variant
from foliolab.files import full_disk_named
from foliolab.grouped import grouped
from foliolab.kernel import module
from foliolab.kernel.built import BuiltKernel
from foliolab.progress import say
from foliolab.vm.disk import Filesystem
from foliolab.vm.guest import Disk, Guest, GuestConfig, OnOutput
from foliolab.vm.outcome import JobResult, OutcomeKind
from foliolab.vm.switches import require_module, switched

_COUNTERS = "/counters"
_ROOT = "/root"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class ProgramCell:
    variant: Variant
    read_ahead_kb: int | None
    """Of the guest's disks; None: as the kernel has it."""

    def __str__(self) -> str:
        limit = "" if self.read_ahead_kb is None else f", read_ahead_kb {self.read_ahead_kb}"
        return f"{self.variant.name}{limit}"


def boots(variants: Sequence[Variant], limits: Sequence[int | None]) -> list[list[ProgramCell]]:
    """The cells of each boot, in order: the variants as given, and for each the limits as given.

    As in experiments, variants that set switches share a boot of their kernel, and one that sets none,
    which needs a kernel as booted, does not share one with them.
    """
    groups = grouped(variants, lambda variant: variant.boot).values()
    return [[ProgramCell(variant, limit) for variant in group for limit in limits] for group in groups]


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
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    deadline_seconds: float | None
    """Of each cell, on a real machine."""
    mounted: tuple[Mounted, ...]
    input: Input | None

    @property
    def disks(self) -> tuple[Disk, ...]:
        return (*(each.disk for each in self.mounted), *([self.input.disk] if self.input else []))

    def names(self, guest: GuestConfig) -> dict[str, str]:
        """Of the mounted disks in the guest, by their use."""
        return {each.use: guest.disk_name(number) for number, each in enumerate(self.mounted)}

    @property
    def whole_environment(self) -> dict[str, str]:
        """With a search path for programs."""
        return {"PATH": _PATH, **self.environment}

    def mount(self, guest: Guest) -> None:
        names = self.names(guest.config)
        for each in self.mounted:
            place = _ROOT if each.use == "root" else f"/{each.use}"
            guest.run([":mount", f"/dev/{names[each.use]}", place, each.filesystem]).checked()

    def command(self, guest: GuestConfig) -> list[str]:
        """That runs it in the guest, after dropped caches and with counters."""
        names = self.names(guest)
        argv = ["/bin/measure", "--counters", _COUNTERS]
        for name in names.values():
            argv += ["--disk", name]
        if "root" in names:
            argv += ["--root", _ROOT]
        if self.input:
            argv += ["--input", f"/dev/{guest.disk_name(len(self.mounted))}"]
            argv += ["--input-bytes", str(self.input.size_bytes)]
        return [*argv, "--", *self.argv]


_EVENTS = {
    "major_faults": "pgmajfault",
    "refaults_file": "workingset_refault_file",
    "refaults_anon": "workingset_refault_anon",
    "mmap_readahead": "mmap_readahead",
}
_DISK_COUNTS = ("read_bytes", "read_requests", "write_bytes")


@dataclass(frozen=True)
class Run:
    """A cell that was run to its end."""

    cell: ProgramCell
    read_ahead_kb: int | None
    """What the first disk really had, in KiB; None without a disk."""
    kernel: KernelFacts
    job: JobResult
    counts: Mapping[str, Any]
    """As guest/tools/measure.c writes them; the disks by what they are for: data, root."""
    warnings: Sequence[str]
    """First lines of what the kernel complained about meanwhile."""
    remark: str = ""
    """That the guest had too little time, if so, which is no fault of the kernel where time is not real."""

    @property
    def status(self) -> int:
        """As a shell has it: the program's own, or 128 and the signal that ended it."""
        return 128 + self.job.signal if self.job.signal else self.job.status

    @property
    def facts(self) -> dict[str, Any]:
        """For JSON: counts of the whole guest during the run, seconds of its clock, bytes of the data disk.

        What the kernel does not count, or has no disk for, is None.
        """
        events = self.counts.get("vmstat", {})
        faults, major = events.get("pgfault"), events.get("pgmajfault")
        disks = self.counts.get("disks", {})
        data = disks.get("data", {})
        return {
            "variant": self.cell.variant.name,
            "read_ahead_kb": self.read_ahead_kb,
            "kernel": asdict(self.kernel),
            "status": self.status,
            "seconds": self.counts.get("seconds"),
            **{name: data.get(name) for name in _DISK_COUNTS},
            **{name: events.get(line) for name, line in _EVENTS.items()},
            "minor_faults": None if faults is None or major is None else faults - major,
            "disks": disks,
            "warnings": list(self.warnings),
            "remark": self.remark,
        }


_BLOCK = 4096
_PATIENCE_SECONDS = 2


def spooled_input(scratch: Path) -> Input | None:
    """All that a file or a pipe holds that is our standard input; None if that is a terminal, /dev/null or empty."""
    if sys.stdin is None:
        return None
    stream = sys.stdin.buffer
    if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):
        return None
    path = scratch / "input.img"
    # Whoever was started with a pipe that nobody closes would else wait without a word.
    if not select.select([stream], [], [], _PATIENCE_SECONDS)[0]:
        say("waiting for the end of the standard input; '</dev/null' if there is none")
    with full_disk_named(scratch), path.open("wb") as out:
        shutil.copyfileobj(stream, out, 1 << 20)
        size = out.tell()
        out.truncate(-(-size // _BLOCK) * _BLOCK)
    return Input(Disk(path, "raw"), size) if size else None


_PT_INTERP = 3


def require_static(program: Path, arch: Architecture) -> None:
    """Raise UsageError unless ``program`` is a static 64-bit executable: the guest has no shared libraries."""
    try:
        with program.open("rb") as stream:
            header = stream.read(64)
            if len(header) < 64 or not header.startswith(b"\x7fELF\x02\x01"):
                raise UsageError(f"{program} is not a 64-bit executable; scripts need --packages or --root.")
            machine = struct.unpack_from("<H", header, 18)[0]
            table, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
            stream.seek(table)
            kinds = [struct.unpack_from("<I", stream.read(size))[0] for _ in range(count)]
    except (struct.error, ValueError, OverflowError) as error:
        raise UsageError(f"{program} is not a whole executable.") from error
    except OSError as error:
        raise UsageError(f"{program} cannot be read: {error.strerror}.") from error
    if machine != arch.elf_machine:
        raise UsageError(f"{program} is not a program for {arch.name}.")
    if _PT_INTERP in kinds:
        raise UsageError(
            f"{program} needs shared libraries; link it with -static, or give it Debian packages with --packages, "
            "or a root directory with --root."
        )


def run_boot(
    program: Program,
    kernel: BuiltKernel,
    config: GuestConfig,
    cells: Sequence[ProgramCell],
    console: Path,
    *,
    before: Callable[[ProgramCell], None],
    after: Callable[[Run], None],
    on_output: OnOutput,
) -> None:
    """Run the program in every cell of one boot, in order; ``console`` gets the guest's log.

    ``before`` and ``after`` are called at each cell. The guest ends cleanly: what was written to
    disks that keep it is whole. GuestFailure if the guest itself fails, DiskFull if there was no room.
    """
    with Guest(replace(config, kernel=kernel.image, disks=program.disks, kernel_name=kernel.name), console) as guest:
        program.mount(guest)
        if kernel.module:
            require_module(guest, module.NAME)
        for cell in cells:
            before(cell)
            guest.run(switched(cell.variant.switches)).checked()
            limit = _limit(guest, program, cell.read_ahead_kb)
            command, environment = program.command(guest.config), program.whole_environment
            job = guest.run(command, program.deadline_seconds, env=environment, on_output=on_output)
            counts = _counts(guest, program)
            warnings, remark = guest.heard()
            job = replace(job, argv=program.argv)
            after(Run(cell, limit, KernelFacts.of(kernel), job, counts, warnings, remark))
        guest.power_off()


def _limit(guest: Guest, program: Program, read_ahead_kb: int | None) -> int | None:
    """Set the readahead limit of all disks; returns what the first has then."""
    files = [f"/sys/block/{name}/queue/read_ahead_kb" for name in program.names(guest.config).values()]
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
    counts["disks"] = {use: counts["disks"][name] for use, name in program.names(guest.config).items()}
    return counts

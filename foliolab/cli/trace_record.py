# SPDX-License-Identifier: GPL-2.0-only
"""Record which pages of its mapped files a program touches in a guest: every touch of the files on /data, in order,
which slows the program down. Its output and exit status become ours. './lab record' records on this machine.

example: ./lab trace record --disk xfs:1G -o scan.trace --variant off,adaptive -- ./sparse-mmap --file /data/file
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from foliohost.cli.record import INTERRUPTED
from foliohost.trace import Measured, Trace, write_trace
from foliolab.campaign.program import Program, ProgramCell, Run, boots, run_boot
from foliolab.cli.in_guest import Asked, Guests, add_program, pass_on, require_ours, variants_of
from foliolab.cli.options import limits_of, require_room_for
from foliolab.errors import NoResult, UsageError
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.name import PATCHED
from foliolab.progress import say
from foliolab.trace.record import MOST_TOUCHES, WINDOW, record, require_bounds
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.scratch import scratch_directory


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(interrupted=INTERRUPTED)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", type=Path, required=True, help="where the trace goes")
    add("--window", type=int, default=WINDOW, help=f"touches within so many pages may be missing (default: {WINDOW})")
    add("--most", type=int, default=MOST_TOUCHES, help=f"touches, and none after them (default: {MOST_TOUCHES})")
    text = "run it afterwards with these, too, and put what was counted in the trace"
    add("--variant", metavar="NAME,...", help=text)
    add("--read-ahead-kb", metavar="KIB,...", help="of those runs (the kernel's own)")
    add_program(parser)


def handle(arguments: argparse.Namespace) -> int:
    asked = Asked.by(arguments)
    planned: list[list[ProgramCell]] = []
    variants = variants_of(arguments.variant, (), asked)
    if variants:
        planned = boots(variants, limits_of(arguments.read_ahead_kb))
    elif arguments.read_ahead_kb is not None:
        raise UsageError("--read-ahead-kb is of the runs that --variant asks for.")
    require_bounds(arguments.window, arguments.most)
    require_room_for("--output", arguments.output)
    if not asked.data:
        raise UsageError("Only files on /data are recorded; give the guest a disk with --disk, --data or --data-size.")
    files = asked.files()
    kernels = asked.build([PATCHED, *(cells[0].variant.kernel for cells in planned)])
    require_ours(variants, kernels)
    guests = asked.guests(kernels, ["measure", "touches"], files)
    with scratch_directory() as scratch:
        program = asked.program(guests, scratch)
        recorded, status = _record(program, guests.configs[PATCHED], scratch, arguments.window, arguments.most)
        trace = replace(recorded, program=program.argv)
        write_trace(arguments.output, trace)
        say(_words(trace))
        if planned and not status:
            runs = _measure(program, planned, kernels, guests, scratch)
            write_trace(arguments.output, replace(trace, measured=tuple(map(_measured, runs))))
    return status


def _record(program: Program, config: GuestConfig, scratch: Path, window: int, most: int) -> tuple[Trace, int]:
    # The runs that are measured begin with the same data.
    disks = tuple(replace(disk, keep_writes=False) for disk in program.disks)
    with Guest(replace(config, disks=disks), scratch / "console") as guest:
        program.mount(guest)
        return record(
            guest,
            program.command(guest.config),
            window=window,
            most=most,
            environment=program.whole_environment,
            deadline_seconds=program.deadline_seconds,
            on_output=pass_on,
        )


def _measure(
    program: Program, plan: list[list[ProgramCell]], kernels: Mapping[str, BuiltKernel], guests: Guests, scratch: Path
) -> list[Run]:
    """The program without being recorded, in every cell; its output is that of the recorded run."""
    runs: list[Run] = []
    for cells in plan:
        name = cells[0].variant.kernel
        run_boot(program, kernels[name], guests.configs[name], cells, scratch / "console", after=runs.append)
    return runs


def _measured(run: Run) -> Measured:
    facts = run.facts
    if run.status or facts["read_bytes"] is None or facts["major_faults"] is None or run.read_ahead_kb is None:
        raise NoResult(f"The program failed, or was not counted, without being recorded ({run.cell}).")
    counts = {name: facts[name] for name in ("read_bytes", "read_requests", "major_faults")}
    return Measured(run.cell.variant.name, run.read_ahead_kb, **counts)


def _words(trace: Trace) -> str:
    words = f"{trace.touches} touches of {len(trace.files)} files."
    if trace.lost:
        words += f" {trace.lost} were lost, because the kernel's buffer was full."
    if trace.cut:
        words += f" {trace.cut} more came after --most."
    return words

# SPDX-License-Identifier: GPL-2.0-only
"""Record which pages of its mapped files a program touches in a guest: every touch of the files on /data, in order,
which slows the program down. Its output and exit status become ours. './lab record' records on this machine.

example: ./lab trace record --disk xfs:1G -o scan.trace -- ./sparse-mmap --file /data/file
"""

import argparse
from dataclasses import replace
from pathlib import Path

from foliohost.cli.record import INTERRUPTED
from foliohost.trace import Trace, write_trace
from foliolab.campaign.program import Program
from foliolab.cli.in_guest import Asked, add_program, pass_on
from foliolab.cli.options import require_room_for
from foliolab.errors import UsageError
from foliolab.kernel.name import PATCHED
from foliolab.progress import say
from foliolab.trace.record import record
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.scratch import scratch_directory


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(interrupted=INTERRUPTED)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="where the trace goes")
    add_program(parser)


def handle(arguments: argparse.Namespace) -> int:
    asked = Asked.by(arguments)
    require_room_for("--output", arguments.output)
    if not asked.data:
        raise UsageError("Only files on /data are recorded; give the guest a disk with --disk, --data or --data-size.")
    files = asked.files()
    guests = asked.guests(asked.build([PATCHED]), ["measure", "touches"], files)
    with scratch_directory() as scratch:
        program = asked.program(guests, scratch)
        recorded, status = _record(program, guests.configs[PATCHED], scratch / "console")
    trace = replace(recorded, program=program.argv)
    write_trace(arguments.output, trace)
    say(_words(trace))
    return status


def _record(program: Program, config: GuestConfig, console: Path) -> tuple[Trace, int]:
    with Guest(replace(config, disks=program.disks), console) as guest:
        program.mount(guest)
        return record(
            guest,
            program.command(guest.config),
            environment=program.whole_environment,
            deadline_seconds=program.deadline_seconds,
            on_output=pass_on,
        )


def _words(trace: Trace) -> str:
    words = f"{trace.touches} touches of {len(trace.files)} files."
    if trace.lost:
        words += f" {trace.lost} were lost, because the kernel's buffer was full."
    if trace.cut:
        words += f" {trace.cut} more came after them."
    return words

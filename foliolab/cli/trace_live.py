# SPDX-License-Identifier: GPL-2.0-only
"""``lab trace record --live``: a program or a process on this machine, on the kernel that runs here."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from foliolab.cli.options import require_room_for, require_seconds, size_of
from foliolab.errors import LabError, UsageError
from foliolab.live.record import LIMIT_BYTES, LiveRecording, record
from foliolab.live.target import Process, StartedProgram
from foliolab.model.compiled import compiled
from foliolab.model.library import PAGE_BYTES
from foliolab.progress import Reporter
from foliolab.report.terminal import terminal
from foliolab.report.trace import print_replays
from foliolab.trace.format import write_trace
from foliolab.trace.replay import replays

_OURS = ("pid", "file", "seconds", "limit", "fine", "reads")
_SHARED = ("output", "program", "arguments")


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "on this machine",
        "With --live, the kernel that runs here tells of its faults, by its own tracepoints; root is needed. It tells"
        " less than a guest: no touch of a page that is mapped already, and a fault maps up to 16.",
    ).add_argument
    add("--live", action="store_true", help="record here, in place of a guest; of the options above only -o")
    add("--pid", type=int, metavar="PID", help="this process, and what it starts from now on, in place of a program")
    add("--file", metavar="GLOB", action="append", default=[], help="only these files, such as '/var/lib/db/**'")
    add("--seconds", type=float, metavar="N", help="for so long at most")
    add("--limit", metavar="SIZE", help="events of this size at most (256M)")
    add("--fine", action="store_true", help="faults map one page each meanwhile, on the whole machine: more of them")
    add(
        "--reads",
        metavar="FILE",
        type=Path,
        help="a second trace: pages that faults read, in place of touches; costs more",
    )


def require_place(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """UsageError for options of a guest with --live, or the other way round."""
    given = (name for name, value in vars(arguments).items() if value != parser.get_default(name))
    for name in given:
        option = f"--{name.replace('_', '-')}"
        if arguments.live and name not in (*_OURS, *_SHARED, "live"):
            raise UsageError(f"{option} is of guests; it does not go with --live.")
        if not arguments.live and name in _OURS:
            raise UsageError(f"{option} goes with --live only.")
    if bool(arguments.program) == bool(arguments.live and arguments.pid):
        raise UsageError("Name a program, or with --live a process by --pid.")


def handle(arguments: argparse.Namespace) -> int:
    report = Reporter()
    limit = LIMIT_BYTES if arguments.limit is None else size_of(arguments.limit)
    require_seconds("--seconds", arguments.seconds)
    for option in ("output", "reads"):
        require_room_for(f"--{option}", getattr(arguments, option))
    argv = [arguments.program, *arguments.arguments] if arguments.program else []
    target = StartedProgram(argv) if argv else Process(arguments.pid)
    try:
        recording = record(
            target,
            patterns=arguments.file,
            seconds=arguments.seconds,
            limit_bytes=limit,
            fine=arguments.fine,
            reads=arguments.reads is not None,
            command=argv,
        )
    except BaseException:
        target.end()
        raise
    write_trace(arguments.output, recording.trace)
    if recording.reads:
        write_trace(arguments.reads, recording.reads)
    for sentence in _sentences(recording, arguments.fine):
        report.say(sentence)
    _compare(arguments, recording, report)
    return target.status()


def _compare(arguments: argparse.Namespace, recording: LiveRecording, report: Reporter) -> None:
    """Print what the kernel read beside what the model says of the same."""
    trace = recording.trace
    window_kb = trace.other["live"]["read_ahead_kb"]
    if not recording.reads and not arguments.fine:
        report.say("What the kernel read was not recorded; --reads does that, and compares it with the model.")
        return
    if window_kb is None or trace.page_size != PAGE_BYTES or not (trace.measured or arguments.fine):
        report.say("That is not compared with the model, which begins with nothing in memory and has pages of 4 KiB.")
        return
    name = str(arguments.output)
    try:
        compiled(report)
        print_replays(terminal(stderr=True), list(replays(name, trace, ["off"], [window_kb])))
    except LabError as error:
        report.say(str(error))


def _sentences(recording: LiveRecording, fine: bool) -> Iterator[str]:
    trace = recording.trace
    read = f"; {recording.reads.touches} pages of these were read" if recording.reads else ""
    yield f"{trace.touches} touches of {len(trace.files)} files{read}."
    if trace.lost:
        yield f"{trace.lost} events were lost, because the kernel's buffer was full."
    if recording.full:
        yield "The recording is cut off: --limit is reached."
    if fine:
        yield "Not seen: touches of pages that are mapped already."
        yield "With --fine, faults were more and the kernel read less: the model tells what it reads without."
    else:
        yield "Not seen: touches of pages that are mapped already. A fault maps up to 16 pages; --fine has it map one."
    if not recording.located:
        yield "This kernel does not tell which of the pages was touched: the first one stands for all that are mapped."
    if recording.cached:
        yield f"{recording.cached} of the pages touched were in memory before."

# SPDX-License-Identifier: GPL-2.0-only
"""Record which pages of mapped files a program or a process touches, by the tracepoints of the kernel that runs here.
Takes root. It tells less than a recording in a guest of the lab's: no touch of a page that is mapped already, and a
fault maps up to 16. The program's output and exit status become ours.

example: sudo foliolab-host record -o scan.trace --pid 4711 --seconds 30
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from foliohost.cli.options import add_words, require_room_for, require_seconds, size_of, words
from foliohost.errors import UsageError
from foliohost.record import LIMIT_BYTES, LiveRecording, record
from foliohost.target import LiveTarget, Process, StartedProgram
from foliohost.trace import write_trace

INTERRUPTED = "Interrupted; a trace is written only once the recording has ended."


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(interrupted=INTERRUPTED)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="where the trace goes")
    add = parser.add_argument
    add("--pid", type=int, metavar="PID", help="this process, and what it starts from now on, in place of a program")
    add("--file", metavar="GLOB", action="append", default=[], help="only these files, such as '/var/lib/db/**'")
    add("--seconds", type=float, metavar="N", help="for so long at most")
    text = "stop when events and kept mappings, or pages read, take this much (256M)"
    add("--limit", metavar="SIZE", help=text)
    add("--fine", action="store_true", help="faults map one page each meanwhile, on the whole machine: more of them")
    add(
        "--reads",
        metavar="FILE",
        type=Path,
        help="a second trace: pages that faults read, in place of touches; costs more",
    )
    add_words(parser, "a program to run, and its arguments")


def handle(arguments: argparse.Namespace) -> int:
    argv = words(arguments)
    if bool(argv) == (arguments.pid is not None):
        raise UsageError("Name a program, or a process by --pid.")
    limit = LIMIT_BYTES if arguments.limit is None else size_of(arguments.limit)
    require_seconds("--seconds", arguments.seconds)
    for option in ("output", "reads"):
        require_room_for(f"--{option}", getattr(arguments, option))
    target = StartedProgram(argv) if argv else Process(arguments.pid)
    try:
        _record(target, arguments, argv, limit)
    except Exception:
        target.leave()
        raise
    except BaseException:
        target.end()
        raise
    return target.status()


def _record(target: LiveTarget, arguments: argparse.Namespace, argv: list[str], limit: int) -> None:
    recording = record(
        target,
        patterns=arguments.file,
        seconds=arguments.seconds,
        limit_bytes=limit,
        fine=arguments.fine,
        reads=arguments.reads is not None,
        command=argv,
    )
    write_trace(arguments.output, recording.trace)
    if recording.reads:
        write_trace(arguments.reads, recording.reads)
    for sentence in _sentences(recording, arguments):
        print(sentence, file=sys.stderr)


def _sentences(recording: LiveRecording, arguments: argparse.Namespace) -> Iterator[str]:
    trace = recording.trace
    read = f"; {recording.reads.touches} pages of these were read" if recording.reads else ""
    yield f"{trace.touches} touches of {len(trace.files)} files{read}."
    if trace.lost:
        yield f"{trace.lost} events were lost, because the kernel's buffer was full."
    if recording.full:
        yield "The recording is cut off: --limit is reached."
    if recording.full_disk:
        yield f"The recording is cut off. {recording.full_disk}"
    if arguments.fine:
        yield "Not seen: touches of pages that are mapped already."
        yield "With --fine, faults were more and the kernel read less: the model tells what it reads without."
    else:
        yield "Not seen: touches of pages that are mapped already. A fault maps up to 16 pages; --fine has it map one."
    if not recording.located:
        yield "This kernel does not tell which of the pages was touched: the first one stands for all that are mapped."
    if recording.cached:
        yield f"{recording.cached} of the pages touched were in memory before."
    if trace.measured or arguments.fine:
        yield f"'./lab trace replay {arguments.output}' tells what the lab's model reads of the same touches."
    elif not recording.reads:
        yield "What the kernel read was not recorded; --reads does that, for comparison with the lab's model."
    else:
        yield "What the kernel read is not in the trace: the model, for comparison, begins with nothing in memory."

# SPDX-License-Identifier: GPL-2.0-only
"""Tell how much of mapped files is read here for each byte used, and what helps. Any Linux since 6.1, as the user
whose processes these are. With --host, tell of all processes of the machine, as a table or as metrics. A command keeps
its input, output and exit status, and the report goes to the standard error; with --json, the command's output does.
Where something is wrong, up to 16 MiB of the file are read past the page cache in half a second, to tell what remedies
take in seconds.

example: foliolab-host diagnose --pid 4711 --seconds 30
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from foliohost import residency
from foliohost.bits import count_ones
from foliohost.called import called
from foliohost.circumstances import circumstances
from foliohost.cli.cure import tell_restored
from foliohost.cli.options import add_json, add_words, require_room_for, require_seconds, words
from foliohost.devices import device_of
from foliohost.engines import engine_of
from foliohost.errors import FolioError, UsageError
from foliohost.faults import FaultTrace, followed
from foliohost.files import write_atomic
from foliohost.folios import TextFolios, text_folios
from foliohost.groups import Groups
from foliohost.host import watch_host
from foliohost.observation import Observation
from foliohost.processes import (
    PAGE_BYTES,
    Counters,
    Tally,
    counters,
    descendants,
    mapped_by,
    mappings,
    name,
    require_running,
    runs,
)
from foliohost.program import adopt_orphans, start
from foliohost.report import host
from foliohost.report.diagnosis import SCHEMA, print_diagnosis, print_file, to_json
from foliohost.shares import FileShare
from foliohost.survey import MOST_PROCESSES, survey
from foliohost.terminal import terminal
from foliohost.verdict import judge
from foliohost.watch import Watch

_SECONDS = 10.0
_TOP = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pid", type=int, action="append", default=[], help="this process; can be repeated")
    parser.add_argument("--file", type=Path, help="this file, and whoever maps it")
    parser.add_argument("--host", action="store_true", help="the processes of this machine that read most")
    parser.add_argument(
        "--seconds", type=float, metavar="N", help=f"look for so long (default: {_SECONDS:.0f}; a command: to its end)"
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        default=None,
        help="read up to 16 MiB of the file past the page cache for 0.5 s, to tell seconds: done anyway if something is"
        " wrong with it",
    )
    text = "never read anything of the file, not even to identify its engine"
    parser.add_argument("--no-probe", dest="probe", action="store_false", help=text)
    add_json(parser)
    add = parser.add_argument_group("with --host").add_argument
    add("--processes", type=int, metavar="N", help=f"watch so many at most (default: {MOST_PROCESSES})")
    add("--top", type=int, metavar="N", help=f"tell of so many files, the worst (default: {_TOP})")
    add("--openmetrics", type=Path, metavar="FILE.prom", help="write metrics there, and print nothing")
    add_words(parser)


def handle(arguments: argparse.Namespace) -> int:
    command = words(arguments)
    if bool(arguments.pid) + (arguments.file is not None) + arguments.host + bool(command) != 1:
        raise UsageError("Say what to look at: one of --pid, --file, --host, or -- and a command.")
    require_seconds("--seconds", arguments.seconds)
    _require_host(arguments)
    tell_restored()
    if command:
        return _command(command, arguments.seconds, arguments.json, arguments.probe)
    seconds = arguments.seconds or _SECONDS
    if arguments.host:
        return _host(arguments, seconds)
    if arguments.file:
        return _file(arguments.file, seconds, arguments.json, arguments.probe)
    for pid in arguments.pid:
        require_running(pid)
        counters(pid)
        mappings(pid)
    groups = Groups(arguments.pid)
    _report(_watched(arguments.pid, seconds), _folios(arguments.pid), groups, arguments.json, arguments.probe)
    return 0


def _require_host(arguments: argparse.Namespace) -> None:
    """UsageError for options of --host that cannot be meant."""
    for option in ("processes", "top", "openmetrics"):
        value = getattr(arguments, option)
        if value is not None and not arguments.host:
            raise UsageError(f"--{option} belongs to --host.")
        if isinstance(value, int) and not 0 < value <= 1000:
            raise UsageError(f"--{option} is a number from 1 to 1,000.")
    if arguments.openmetrics and arguments.json:
        raise UsageError("One of --json and --openmetrics is enough.")
    require_room_for("--openmetrics", arguments.openmetrics)


def _host(arguments: argparse.Namespace, seconds: float) -> int:
    end, top = time.monotonic() + seconds, arguments.top or _TOP
    found = survey(seconds, arguments.processes or MOST_PROCESSES)
    began = time.monotonic()
    with _traced(list(found.groups)) as trace:
        took = time.monotonic() - began  # to let go of the trace takes as long
        load = watch_host(found, max(end - time.monotonic() - took, seconds / 4), trace)
    if arguments.openmetrics:
        write_atomic(arguments.openmetrics, host.to_metrics(load, top))
    elif arguments.json:
        print(json.dumps(host.to_json(load, top)))
    else:
        host.print_host(terminal(), load, top)
    return 0


def _watched(pids: list[int], seconds: float, only: os.stat_result | None = None) -> Observation:
    """What processes do in that time; Ctrl-C ends it early."""
    began = time.monotonic()
    with _traced(pids) as trace:
        took = time.monotonic() - began  # to let go of the trace takes as long
        watch = Watch(lambda: pids, only, trace=trace)
        left = began + seconds - took - time.monotonic()
        try:
            watch.run(max(left, seconds / 4), lambda: not any(map(runs, pids)))
        except KeyboardInterrupt:
            print(f"{Path(called()).name}: Interrupted; this is what was seen so far.", file=sys.stderr)
        return watch.finish()


@contextmanager
def _traced(pids: list[int], but: int | None = None) -> Iterator[FaultTrace | str]:
    """The faults of processes, or why they cannot be followed."""
    with ExitStack() as block:
        trace: FaultTrace | str
        try:
            trace = block.enter_context(followed(pids, but))
        except FolioError as error:
            trace = str(error)
        except OSError as error:
            trace = f"The kernel's trace cannot be had: {error.strerror}."
        yield trace


def _folios(pids: list[int]) -> TextFolios | str:
    """Those of the text of processes that are there, or why they are not known."""
    try:
        return text_folios(pids)
    except FolioError as error:
        return str(error)


def _report(
    seen: Observation,
    folios: TextFolios | str,
    groups: Groups,
    as_json: bool,
    probe: bool | None,
    facts: dict[str, Any] | None = None,
    to_error: bool = False,
) -> None:
    verdict = judge(seen)
    if probe is not False:
        verdict = replace(verdict, files=tuple(map(_with_engine, verdict.files)))
    around = circumstances(seen, verdict, groups, probe)
    if as_json:
        print(json.dumps({**(facts or {}), **to_json(seen, verdict, folios, around)}))
    else:
        print_diagnosis(terminal(stderr=to_error), seen, verdict, folios, around)


def _with_engine(file: FileShare) -> FileShare:
    """With the engine of a data file that something was read of, or perhaps was: that takes a few bytes of it."""
    if file.seen.text or file.read_bytes == 0:
        return file
    return replace(file, seen=replace(file.seen, engine=engine_of(Path(file.seen.path))))


def _file(path: Path, seconds: float, as_json: bool, probe: bool | None) -> int:
    device = device_of(path)
    status = path.stat()
    mapping, hidden = mapped_by(status)
    names = {}
    for pid in mapping:
        with suppress(UsageError):  # it has ended meanwhile
            names[pid] = name(pid)
    pids = list(names)
    there = residency.cached(path)
    facts: dict[str, Any] = {
        "path": str(path.absolute()),
        "device": device.name,
        "rotational": device.rotational,
        "window_kb": device.read_ahead_kb,
        "engine": None if probe is False else engine_of(path) or None,
        "size_bytes": status.st_size,
        "resident_bytes": None if there is None else count_ones(there) * PAGE_BYTES,
        "processes": names,
        "hidden_processes": hidden,
    }
    if not as_json:
        print_file(terminal(), facts)
    if pids:
        groups = Groups(pids)
        _report(_watched(pids, seconds, status), _folios(pids), groups, as_json, probe, facts)
    elif as_json:
        print(json.dumps({"schema": SCHEMA, **facts, "verdict": "not-mapped", "files": []}))
    return 0


def _command(command: list[str], seconds: float | None, as_json: bool, probe: bool | None) -> int:
    if not shutil.which(command[0]):
        raise UsageError(f"There is no program {command[0]} that can be run.")
    adopt_orphans()
    before, us = _children(), os.getpid()
    # Ctrl-C is for the command, which ends by it, and so do we then.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    started: list[subprocess.Popen[bytes]] = []
    asked: list[int] = []

    def end(number: int, frame: object) -> None:
        asked.append(number)
        for each in started:
            each.terminate()

    signal.signal(signal.SIGTERM, end)
    with _traced([us], us) as trace:
        watcher = trace.watcher if isinstance(trace, FaultTrace) else None
        ended_orphans: list[int] = []

        def ours() -> list[int]:
            for pid in ended_orphans:  # the look before has counted them
                with suppress(ChildProcessError):  # its parent is there, and waits for it
                    os.waitpid(pid, os.WNOHANG)
            found = [pid for pid in descendants(us) if pid != watcher]
            ended_orphans[:] = [pid for pid in found if pid != child.pid and not runs(pid)]
            return found

        child = start(command, stdout=sys.stderr if as_json else None)
        started.append(child)
        if asked:
            child.terminate()
        groups = Groups([child.pid])
        watch = Watch(ours, fresh=True, trace=trace)
        watch.run(seconds, lambda: _ended(child.pid))
        ended = _ended(child.pid)
        if ended:
            child.wait()
        # Orphans that the last look waits for are among those children only after it.
        seen = watch.finish(Tally().of(ours()) + _children().since(before) if ended else None)
        folios = _folios([] if ended else ours())
    adopt_orphans(False)  # nobody looks any more
    child.wait()
    _report(seen, folios, groups, as_json, probe, to_error=not as_json)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _ended(pid: int) -> bool:
    """Whether a child of ours has ended; it is not waited for."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # who asks twice for its end has waited for it
        return True


def _children() -> Counters:
    """What those children of ours did that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Counters(usage.ru_inblock * 512, 0, usage.ru_majflt, usage.ru_minflt)

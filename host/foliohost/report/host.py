# SPDX-License-Identifier: GPL-2.0-only
"""What a machine reads of mapped files, as text for the terminal, as JSON and as metrics."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from foliohost.host import FileLoad, HostLoad
from foliohost.openmetrics import Gauge, metrics_text
from foliohost.sizes import count, size
from foliohost.terminal import Column, Terminal, print_table
from foliohost.verdict import DiagnosisKind


def to_json(load: HostLoad, top: int) -> dict[str, Any]:
    """Everything that is known of the machine, and of so many files."""
    return {
        "seconds": round(load.seconds, 3),
        "busy_seconds": round(load.busy_seconds, 3),
        "machine_read_bytes": load.read_bytes,
        "machine_major_faults": load.major_faults,
        "watched_processes": len(load.survey.groups),
        "hidden_processes": load.survey.hidden,
        "left_out_processes": load.survey.left_out,
        "left_out_files": len(load.files[top:]),
        "untraced": load.traced.untraced or None,
        "trace_doubt": load.traced.doubt or None,
        "files": [_file_json(file) for file in load.files[:top]],
    }


def _file_json(file: FileLoad) -> dict[str, Any]:
    share = file.share
    return {
        **asdict(share.seen),
        "path": file.path,
        "engine": None,
        "cgroup": file.cgroup,
        "seconds": round(file.seconds, 3),
        "verdict": file.kind.value,
        "read_bytes": share.read_bytes,
        "read_method": share.method or None,
        "used_bytes": share.used_most,
        "used_bytes_least": share.used_least,
        "process_major_faults": file.process_waits,
    }


def print_host(console: Terminal, load: HostLoad, top: int) -> None:
    """Print so many files, the one that was wasted most of first, and what is not known."""
    survey, shown = load.survey, load.files[:top]
    console.out(
        f"{load.seconds:.1f} s: the whole machine {size(load.read_bytes)} read, {count(load.major_faults)} major"
        f" faults. Processes watched: {len(survey.groups)}.",
        style="dim",
    )
    if shown:
        console.out()
        _print_files(console, shown)
    if load.files[top:]:
        console.out(f"and {len(load.files[top:])} more files; --top N shows more", style="dim")
    if survey.left_out:
        console.out(f"Left out by the bounds of this look: {survey.left_out} processes that read or were not asked.")
    if survey.hidden:
        console.out(f"Hidden from us: {survey.hidden} processes. Root with CAP_SYS_PTRACE sees them.")
    if load.traced.untraced and shown:
        console.out(
            f"What is read of a file is estimated, and waits are at most these. {load.traced.untraced}", style="dim"
        )
    if load.traced.doubt:
        console.out(load.traced.doubt, style="dim")


def _print_files(console: Terminal, files: tuple[FileLoad, ...]) -> None:
    columns = [
        Column(("", "file"), tuple(file.path for file in files), 0, left=True),
        Column(("", "verdict"), tuple(file.kind.value for file in files), 1),
        Column(("", "read"), tuple(_size(file.share.read_bytes) for file in files), 0),
        Column(("used", "at most"), tuple(size(file.share.used_most) for file in files), 0),
        Column(("used", "at least"), tuple(size(file.share.used_least) for file in files), 4),
        Column(("waits", "per s"), tuple(map(_waits, files)), 0),
        Column(("", "processes"), tuple(count(len(file.share.seen.processes)) for file in files), 5),
        Column(("", "device"), tuple(file.share.seen.device for file in files), 2),
        Column(("", "control group"), tuple(file.cgroup or "-" for file in files), 3, left=True),
    ]
    print_table(console, columns)


def _size(amount: int | None) -> str:
    return "?" if amount is None else size(amount)


def _waits(file: FileLoad) -> str:
    if file.waits is None:
        return f"<= {file.process_waits / file.seconds:,.1f}"
    return f"{file.waits / file.seconds:,.1f}"


def to_metrics(load: HostLoad, top: int) -> str:
    """The machine and so many files, the one that was wasted most of first: eight series for each."""
    return metrics_text([*_of_files(load.files[:top]), *_of_host(load, len(load.files[top:]))])


def _of_files(files: tuple[FileLoad, ...]) -> list[Gauge]:
    read = Gauge("foliolab_file_read_bytes_per_second", "What was read of a mapped file in the last look.")
    most = Gauge("foliolab_file_used_most_bytes_per_second", "Upper bound of what was used of the file.")
    least = Gauge("foliolab_file_used_least_bytes_per_second", "Lower bound of what was used of the file.")
    waits = Gauge("foliolab_file_waits_per_second", "Major faults for the file, where tracepoints tell.")
    others = Gauge("foliolab_file_process_waits_per_second", "Major faults of its processes, for any memory.")
    processes = Gauge("foliolab_file_processes", "Watched processes that map the file.")
    window = Gauge("foliolab_file_window_bytes", "The readahead window of its device.")
    wasteful = Gauge("foliolab_file_reads_too_much", "1 if diagnose calls what was read of the file too much.")
    # Containers of one group may each have such a file; the worst one has the labels.
    named = {(file.share.seen.device, file.path, file.cgroup): file for file in reversed(files)}
    for (device, path, cgroup), file in named.items():
        share, seen = file.share, file.share.seen
        labels = {"device": device, "file": path, "cgroup": cgroup}
        read.set(labels, _rate(share.read_bytes, file))
        most.set(labels, _rate(share.used_most, file))
        least.set(labels, _rate(share.used_least, file))
        waits.set(labels, _rate(file.waits, file))
        others.set(labels, _rate(file.process_waits, file))
        processes.set(labels, len(seen.processes))
        window.set(labels, seen.window_kb << 10)
        wasteful.set(labels, int(file.kind is DiagnosisKind.READS_TOO_MUCH))
    return [read, most, least, waits, others, processes, window, wasteful]


def _of_host(load: HostLoad, files_left_out: int) -> list[Gauge]:
    processes = Gauge("foliolab_host_processes", "Processes, by what became of them in the last look.")
    for state, number in (
        ("watched", len(load.survey.groups)),
        ("left_out", load.survey.left_out),
        ("hidden", load.survey.hidden),
    ):
        processes.set({"state": state}, number)
    single = (
        ("read_bytes_per_second", "What the whole machine read from block devices.", load.read_bytes / load.seconds),
        ("waits_per_second", "Major faults of the whole machine.", load.major_faults / load.seconds),
        ("files_left_out", "Files of the last look that have no metrics, being less wasteful.", files_left_out),
        ("look_seconds", "How long the last look took, without its survey.", load.seconds),
        ("busy_seconds", "Processor time that the last look took.", load.busy_seconds),
        ("window_adapts", "1 if the patched kernel or the module decides what misses read.", int(load.adaptive)),
    )
    traced = Gauge("foliolab_host_traced", "1 if what faults read is known exactly, by tracepoints.")
    if load.survey.groups:
        traced.set({}, int(not load.traced.untraced))
    return [processes, traced, *(Gauge(f"foliolab_host_{name}", words, {"": value}) for name, words, value in single)]


def _rate(amount: int | None, file: FileLoad) -> float | None:
    """Each second."""
    return None if amount is None else amount / file.seconds

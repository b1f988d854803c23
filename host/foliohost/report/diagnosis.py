# SPDX-License-Identifier: GPL-2.0-only
"""A diagnosis as text for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from foliohost.called import called
from foliohost.circumstances import Circumstances
from foliohost.estimates import PAUSE_SECONDS, DiskCost
from foliohost.folios import TextFolios
from foliohost.observation import FileSeen, Observation
from foliohost.processes import Counters
from foliohost.remedies import Forecast, Remedy, present_figures, remedies, summary
from foliohost.shares import LITTLE_BYTES, FileShare
from foliohost.sizes import count, size
from foliohost.terminal import Column, Terminal, print_table
from foliohost.verdict import Diagnosis, DiagnosisKind, MissCounter, fits, miss_counter, waits_for

SCHEMA = 1
"""Of the JSON: it grows if a key gets another meaning, or is gone."""
_MOST_FILES = 8
_QUIET = (DiagnosisKind.NOTHING_WRONG, DiagnosisKind.FITS)
_WORTH = 20
"""Remedies are told of a file that this part of what is read was read of."""
_OTHER_NUMBERS = "Tracepoints and mappings number {path} differently, or not uniquely, as on overlayfs."
_COUNTERS = {
    MissCounter.OVER_LIMIT: (
        "each miss reads one page, scans as well: the kernel's counter of misses seems above its limit,"
        " unless this open file has a window of one page."
    ),
    MissCounter.HELD_DOWN: (
        "the kernel's counter of misses seems stuck: hits keep it below the limit above which misses read one page."
    ),
}


def to_json(seen: Observation, verdict: Diagnosis, folios: TextFolios | str, around: Circumstances) -> dict[str, Any]:
    """Everything that the diagnosis rests on, in bytes and KiB. ``folios`` may be a sentence why they are unknown."""
    missing = folios if isinstance(folios, str) else None
    counted = seen.counted
    return {
        "schema": SCHEMA,
        "verdict": verdict.kind.value,
        "sentence": verdict.sentence,
        "seconds": round(seen.seconds, 3),
        **asdict(counted),
        "mapped_read_bytes": verdict.read_bytes,
        "used_bytes": verdict.used_most,
        "used_bytes_least": verdict.used_least,
        "ratio_least": verdict.least,
        "ratio_most": verdict.most,
        "read_bytes_before": seen.before.read_bytes,
        "machine_read_bytes": seen.machine_read_bytes,
        "machine_major_faults": seen.machine_major_faults,
        "page_bytes": seen.page_bytes,
        "adaptive": seen.adaptive,
        "untraced": seen.untraced or None,
        "trace_doubt": seen.trace_doubt or None,
        "text_folios": asdict(folios) if isinstance(folios, TextFolios) else None,
        "text_folios_missing": missing,
        "groups": [asdict(group) for group in around.groups],
        "blind_spots": list(around.blind),
        "files": [_file_json(file, verdict, seen, around) for file in verdict.files],
    }


def _file_json(file: FileShare, verdict: Diagnosis, seen: Observation, around: Circumstances) -> dict[str, Any]:
    counter = miss_counter(seen, verdict, file)
    now = present_figures(seen, verdict, file, around)
    cost = around.costs.get(file.seen.device)
    return {
        **asdict(file.seen),
        "read_bytes": file.read_bytes,
        "read_method": file.method or None,
        "used_bytes": file.used_most,
        "used_bytes_least": file.used_least,
        "untraced": _untraced(file.seen, seen),
        "miss_counter": counter.value if counter else None,
        "hint": file.seen.hint or None,
        "engine": file.seen.engine or None,
        "waits": now.waits,
        "disk_seconds": now.seconds,
        "disk": asdict(cost) if isinstance(cost, DiskCost) else None,
        "disk_unknown": cost if isinstance(cost, str) else None,
        "cured_window_kb": around.cured_kb.get(file.seen.path),
        "fits": fits(file),
        "remedies": [_remedy_json(remedy, seen) for remedy in remedies(seen, verdict, file, around)],
    }


def _remedy_json(remedy: Remedy, seen: Observation) -> dict[str, Any]:
    found = remedy.figures
    reads = found.reads_bytes
    return {
        "name": remedy.name,
        "command": remedy.command,
        "bytes": reads,
        "bytes_bounds": found.bounds,
        "waits": found.waits,
        "seconds": found.seconds,
        "bytes_per_wait": round(reads / found.waits) if reads is not None and found.waits else None,
        "bytes_per_second": round(reads / seen.seconds) if reads is not None else None,
        "formula": found.formula,
        "caveat": remedy.caveat,
    }


def _untraced(file: FileSeen, seen: Observation) -> str | None:
    """Why what is read of this file is estimated; None if it is known."""
    return None if file.fault_pages is not None else seen.untraced or _OTHER_NUMBERS.format(path=file.path)


def print_diagnosis(
    console: Terminal, seen: Observation, verdict: Diagnosis, folios: TextFolios | str, around: Circumstances
) -> None:
    """Print the verdict, what it rests on, and what helps. ``folios`` may be a sentence why they are unknown."""
    style = "" if verdict.kind in _QUIET else "bold"
    console.out(verdict.sentence, style=style)
    counted = seen.counted
    console.out(
        f"{seen.seconds:.1f} s: {size(counted.read_bytes)} read, {_waits(counted)};"
        f" the whole machine {size(seen.machine_read_bytes)}, {count(seen.machine_major_faults)}.",
        style="dim",
    )
    if counted.read_bytes < LITTLE_BYTES <= seen.before.read_bytes:
        before = size(seen.before.read_bytes)
        console.out(f"Before that, {before} had been read: '{called()} diagnose -- COMMAND' looks from the start.")
    read = [file for file in verdict.files if _tells(file)]
    shown = read[:_MOST_FILES]
    if shown:
        console.out()
        _print_files(console, shown, verdict, around)
        for why in dict.fromkeys(_untraced(file.seen, seen) for file in shown):
            if why:
                console.out(f"What is read of a file is estimated. {why}", style="dim")
        if seen.trace_doubt:
            console.out(seen.trace_doubt, style="dim")
    if len(read) > len(shown):
        console.out(f"and {len(read) - len(shown)} more files; --json has all", style="dim")
    for file in shown:
        if counter := miss_counter(seen, verdict, file):
            console.out(f"{file.seen.path}: {_COUNTERS[counter]}")
        if fits(file) and verdict.kind not in _QUIET:
            console.out(f"{file.seen.path}: nearly all of it is cached by now, so these reads end by themselves.")
    _print_text(console, seen.files, folios)
    _print_groups(console, around)
    for file in shown:
        if file.read_bytes is not None and file.read_bytes * _WORTH < verdict.read_bytes:
            continue
        if found := remedies(seen, verdict, file, around):
            now = present_figures(seen, verdict, file, around)
            _print_remedies(console, file, found, now, seen.seconds)
    for device, cost in around.costs.items():
        if isinstance(cost, DiskCost) or verdict.kind not in _QUIET:
            console.out(_disk(device, cost), style="dim")


def _waits(counted: Counters) -> str:
    words = f"{count(counted.major_faults)} major faults"
    if counted.read_bytes and counted.major_faults:
        words += f" ({size(counted.read_bytes / counted.major_faults)} each)"
    return words


def _disk(device: str, cost: DiskCost | str) -> str:
    """What the disk's time is reckoned by, or why it is not known."""
    if isinstance(cost, str):
        return f"How long {device} takes is not known. {cost}"
    rested = f"{cost.idle_us:,.0f} us more after {PAUSE_SECONDS * 1000:.0f} ms of rest"
    return (
        f"{device} took {cost.request_us:,.0f} us for a request ({rested}) and {cost.page_us:.1f} us for each page"
        " just now."
    )


def _print_groups(console: Terminal, around: Circumstances) -> None:
    for group in around.groups:
        pids = ", ".join(map(str, group.processes[:_MOST_FILES]))
        if group.name:
            console.out(f"In {group.name}: {pids}.", style="dim")
        if group.proactive_bytes:
            console.out(
                f"{size(group.proactive_bytes)} were taken from the control group {group.path} because somebody asked"
                " for that (memory.reclaim): what is read again is not for lack of memory."
            )
    for sentence in around.blind:
        console.out(sentence, style="dim")


def _tells(file: FileShare) -> bool:
    """Whether something was read of it; of program text, or where that is not known, enough to be worth a word."""
    if file.seen.text:
        return (file.read_bytes or 0) >= LITTLE_BYTES
    return file.seen.size_bytes >= LITTLE_BYTES if file.read_bytes is None else file.read_bytes != 0


def _print_files(console: Terminal, files: Sequence[FileShare], verdict: Diagnosis, around: Circumstances) -> None:
    columns = [
        Column(("", "file"), tuple(file.seen.path for file in files), 0, left=True),
        Column(("", "read"), tuple("?" if file.read_bytes is None else size(file.read_bytes) for file in files), 0),
        Column(("", "waits"), tuple(count(waits_for(verdict, file)) for file in files), 1),
        Column(("used", "at most"), tuple(size(file.used_most) for file in files), 0),
        Column(("used", "at least"), tuple(size(file.used_least) for file in files), 2),
        Column(("", "cached"), tuple(_cached(file) for file in files), 3),
        Column(("", "hint"), tuple(file.seen.hint or ("-" if file.seen.hint_known else "?") for file in files), 4),
        Column(("", "device"), tuple(file.seen.device for file in files), 1),
        Column(("window", "KiB"), tuple(_window(file, around) for file in files), 0),
    ]
    print_table(console, columns)


def _window(file: FileShare, around: Circumstances) -> str:
    cured = file.seen.path in around.cured_kb
    return f"{count(around.window_kb(file.seen))}{' cured' if cured else ''}"


def _cached(file: FileShare) -> str:
    if file.seen.resident_bytes is None or not file.seen.size_bytes:
        return "?"
    return f"{min(1.0, file.seen.resident_bytes / file.seen.size_bytes):.0%}"


def _print_text(console: Terminal, files: Sequence[FileSeen], folios: TextFolios | str) -> None:
    rss = sum(file.rss_bytes for file in files if file.text)
    pmd = sum(file.pmd_mapped_bytes for file in files if file.text)
    if rss:
        console.out(f"Program text: {size(rss)} mapped, {size(pmd)} of it by PMDs. {_folios(folios)}", style="dim")


def _folios(found: TextFolios | str) -> str:
    if isinstance(found, str):
        return f"Its folio sizes are not known: {found[0].lower()}{found[1:]}"
    if not found.mapped_bytes:
        return "No folios of it are mapped now."
    parts = {size(kib << 10): number for kib, number in found.by_size_kb.items()}
    parts |= {"larger than what is mapped of them": found.partial_bytes} if found.partial_bytes else {}
    return f"In folios of {', '.join(f'{name} {each / found.mapped_bytes:.0%}' for name, each in parts.items())}."


def _print_remedies(console: Terminal, file: FileShare, found: Sequence[Remedy], now: Forecast, seconds: float) -> None:
    console.out()
    console.out(f"What helps with {file.seen.path}:", style="bold")
    for remedy in found:
        console.out(f"  {remedy.name}: {summary(remedy, now, seconds)}")
        if remedy.command:
            console.out(f"      {remedy.command}")


def print_file(console: Terminal, facts: Mapping[str, Any]) -> None:
    """Print what is known of a file before anything is measured."""
    cached = facts["resident_bytes"]
    share = "unknown; its owner may see it" if cached is None else f"{size(cached)} of {size(facts['size_bytes'])}"
    console.out(f"{facts['path']}: {on_device(facts['device'], facts['rotational'], facts['window_kb'])}")
    console.out(f"cached: {share}")
    names = ", ".join(f"{pid} ({name})" for pid, name in facts["processes"].items()) or "no process"
    hidden = f"; {facts['hidden_processes']} more do not tell us what they map" if facts["hidden_processes"] else ""
    console.out(f"mapped by: {names}{hidden}")


def on_device(name: str, rotational: bool | None, window_kb: int) -> str:
    """Where a file is, and the window that it gets there."""
    disk = {True: "rotating", False: "not rotating", None: "no block device"}[rotational]
    return f"on {name} ({disk}), window {window_kb} KiB"

# SPDX-License-Identifier: GPL-2.0-only
"""Traces in the model of the page cache: what a program would come to with other windows, rules and memory."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from foliohost.trace import Measured, Trace, read_trace
from foliolab.device import Device
from foliolab.errors import BadTrace, UsageError
from foliolab.model.clock import Clock
from foliolab.model.library import DEFAULT_REQUEST_KB, PAGE_BYTES, Counts, Machine, replay

RULES = ("off", "published", "adaptive", "random")


@dataclass(frozen=True)
class Figures:
    """What a kernel, or the model, comes to."""

    read_bytes: float
    read_requests: float
    major_faults: float


@dataclass(frozen=True)
class Replay:
    """A trace with one variant, window and memory."""

    trace: str
    variant: str
    read_ahead_kb: int
    memory_bytes: int
    predicted: Figures
    recorded: Figures | None
    """The mean of what a guest was measured to do with the same; None if none was."""
    seconds: float | None
    """On the device that was asked for, if one was."""
    counts: Counts
    machine: Machine

    def to_json(self) -> dict[str, Any]:
        plain = asdict(self)
        del plain["counts"], plain["machine"]
        return plain


def read_replayable(path: Path) -> Trace:
    """The trace in a file; BadTrace if there is none, or nothing that the model could touch."""
    trace = read_trace(path)
    if trace.page_size != PAGE_BYTES:
        raise BadTrace(f"{path} has pages of {trace.page_size} bytes; the model's have {PAGE_BYTES}.")
    if not trace.touches:
        raise BadTrace(f"{path} has no touches.")
    return trace


def simulate_trace(machine: Machine, trace: Trace, window: str = "", clock: Clock | None = None) -> Counts:
    """Touch what the trace touches, of files of which nothing is cached yet. ModelError for a machine that cannot be.

    ``window`` is the text of a header in place of the kernel's adaptive window. With ``clock`` the counts have seconds.
    Threads may call this side by side.
    """
    return replay(machine, trace.page_of, trace.file_of, [file.pages for file in trace.files], window, clock)


def replays(
    name: str,
    trace: Trace,
    variants: Sequence[str],
    windows_kb: Sequence[int],
    memory_bytes: int | None = None,
    device: Device | None = None,
) -> Iterator[Replay]:
    """Replay ``trace`` in ``memory_bytes``, else in what each measurement had, else in what its header says.

    On ``device`` requests cost what they do there, and replays have seconds.
    UsageError without any memory, ModelError for one that is too small.
    """
    request_kb = device.measured_request_kb if device else DEFAULT_REQUEST_KB
    clock = Clock((device,)) if device else None
    for variant in variants:
        for window_kb in windows_kb:
            measured = [each for each in trace.measured if (each.variant, each.read_ahead_kb) == (variant, window_kb)]
            for memory in _memories(name, trace, measured, memory_bytes):
                machine = Machine(
                    rules=variant,
                    file_pages=trace.pages,
                    memory_pages=memory // PAGE_BYTES,
                    read_ahead_pages=max(window_kb * 1024 // PAGE_BYTES, 1),
                    request_pages=max(request_kb * 1024 // PAGE_BYTES, 1),
                    reclaim="lists",
                    first_request_pages=device.first_request_kb * 1024 // PAGE_BYTES if device else 0,
                )
                with_it = [each for each in measured if _memory(trace, each) == memory]
                counts = simulate_trace(machine, trace, clock=clock)
                predicted = Figures(counts.read_bytes, counts.requests, counts.major_faults)
                recorded = _mean(with_it) if with_it else None
                seconds = counts.seconds[device.name] if device else None
                yield Replay(name, variant, window_kb, memory, predicted, recorded, seconds, counts, machine)


def _memories(name: str, trace: Trace, measured: Sequence[Measured], wanted: int | None) -> list[int]:
    if wanted:
        return [wanted]
    found = [_memory(trace, each) for each in measured] or [trace.memory_bytes]
    memories = [memory for memory in dict.fromkeys(found) if memory]
    if not memories:
        raise UsageError(f"{name} does not say how much memory its files had; say --memory SIZE.")
    return memories


def _memory(trace: Trace, measured: Measured) -> int | None:
    return measured.memory_bytes or trace.memory_bytes


def _mean(measured: Sequence[Measured]) -> Figures:
    return Figures(
        read_bytes=fmean(each.read_bytes for each in measured),
        read_requests=fmean(each.read_requests for each in measured),
        major_faults=fmean(each.major_faults for each in measured),
    )

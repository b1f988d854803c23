# SPDX-License-Identifier: GPL-2.0-only
"""Traces in seconds of a disk of this machine: the model decides what is read, and that is really read."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

from foliohost.trace import Trace, TraceFile
from foliolab.model.library import PAGE_BYTES
from foliolab.model.reads import KernelRun, ReadRun, read_queue, replay_on, touch_mapped
from foliolab.progress import working
from foliolab.trace.replay import Replay

LEAST_REPETITIONS = 3
"""Fewer have no range that means anything."""


@dataclass(frozen=True)
class ReadCosts:
    request_us: float
    page_us: float

    def seconds(self, run: ReadRun) -> float:
        """What all requests and all pages of a replay take, one after the other."""
        return (run.requests * self.request_us + run.read_bytes / PAGE_BYTES * self.page_us) / 1e6


@dataclass(frozen=True)
class TimedReplay:
    """A trace with one variant, window and memory, replayed several times on a file."""

    replay: Replay
    runs: tuple[ReadRun, ...]
    kernel: tuple[KernelRun, ...]
    """What the kernel that runs here did with the same accesses; empty if it was not asked."""

    @property
    def seconds(self) -> tuple[float, ...]:
        return tuple(run.seconds for run in self.runs)

    @property
    def kernel_seconds(self) -> tuple[float, ...]:
        return tuple(run.seconds for run in self.kernel)

    def to_json(self, base: "TimedReplay", costs: ReadCosts | None) -> dict[str, Any]:
        """``base`` is what it is compared with."""
        first = self.runs[0]
        return {
            **self.replay.to_json(),
            "seconds": median(self.seconds),
            "runs": list(self.seconds),
            "read_bytes": first.read_bytes,
            "requests": first.requests,
            "waits": median(run.waits for run in self.runs),
            "read_by": first.read_by,
            "against": base.replay.variant,
            "ratio": median(self.seconds) / median(base.seconds),
            "differs": apart_from(self.seconds, base.seconds),
            "predicted_seconds": costs.seconds(first) if costs else None,
            "kernel": _kernel_json(self.kernel) if self.kernel else None,
        }


def _kernel_json(runs: Sequence[KernelRun]) -> dict[str, Any]:
    medians = {name: median(getattr(run, name) for run in runs) for name in asdict(runs[0])}
    return {**medians, "runs": [run.seconds for run in runs]}


def apart_from(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether all of one are above, or all below, all of the other; otherwise they do not differ by more than noise."""
    return max(one) < min(other) or max(other) < min(one)


def bases(timed: Sequence[TimedReplay]) -> list[TimedReplay]:
    """For each, what it is compared with: the first variant of the same trace, window and memory."""
    first: dict[tuple[str, int, int], TimedReplay] = {}
    keys = [(each.replay.trace, each.replay.read_ahead_kb, each.replay.memory_bytes) for each in timed]
    return [first.setdefault(key, each) for key, each in zip(keys, timed, strict=True)]


def time_replays(
    trace: Trace, replays: Sequence[Replay], file: Path, repetitions: int, kernel: Mapping[str, bool]
) -> list[TimedReplay]:
    """Replay a trace on a file, each of ``replays`` in turn, once without being counted and then so many times.

    Each round begins with another one, so that drifts of the disk fall on all. ``kernel`` has the variants that the
    kernel that runs here can be, and whether that takes the hint for random access. OSError if the file cannot be read.
    """
    runs: list[list[ReadRun]] = [[] for _ in replays]
    touched: list[list[KernelRun]] = [[] for _ in replays]
    sizes = [each.pages for each in trace.files]
    rounds = (repetitions + 1) * len(replays)
    with read_queue() as queue, working(f"replaying {Path(replays[0].trace).name}", rounds) as task:
        for repetition, number in _turns(repetitions, len(replays)):
            each = replays[number]
            task.note(f"{each.variant}, {each.read_ahead_kb} KiB")
            run = replay_on(queue, file, each.machine, trace.page_of, trace.file_of, sizes)
            mapped = [touch_mapped(file, trace.page_of, random=kernel[each.variant])] if each.variant in kernel else []
            if repetition:
                runs[number].append(run)
                touched[number] += mapped
            task.advance()
    return [
        TimedReplay(each, tuple(some), tuple(others)) for each, some, others in zip(replays, runs, touched, strict=True)
    ]


def _turns(repetitions: int, cases: int) -> Iterator[tuple[int, int]]:
    for repetition in range(repetitions + 1):
        for number in range(cases):
            yield repetition, (repetition + number) % cases


def joined(trace: Trace, pages_of_file: int) -> Trace:
    """The same touches of a single file of that size, in which the trace's files lie one after the other."""
    first = list(accumulate((file.pages for file in trace.files), initial=0))
    pages = array("I", (first[file] + page for file, page in zip(trace.file_of, trace.page_of, strict=True)))
    files = (TraceFile("joined", pages_of_file),)
    return replace(trace, files=files, page_of=pages, file_of=array("I", bytes(pages.itemsize * len(pages))))

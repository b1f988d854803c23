# SPDX-License-Identifier: GPL-2.0-only
"""Simulating a suite. Runs that several cells have in common are made once, and kept in the cache."""

import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import msgspec

from foliolab.device import Device
from foliolab.files import digest, write_atomic
from foliolab.model.clock import Clock
from foliolab.model.compiled import compiled
from foliolab.model.library import DEFAULT_REQUEST_KB, Counts, Machine, load, simulate
from foliolab.model.reported import play
from foliolab.progress import working
from foliolab.simulate.suite import PAGE_KB, AnyCase, ReportCase, Suite, TraceCase, Way, fixed, memory_pages
from foliolab.trace.replay import simulate_trace

Runs = Mapping[Machine, Counts]
"""What a case comes to on each machine, with seconds on the devices that such a machine has."""


def machines(
    suite: Suite, case: AnyCase, times_memory: float, read_ahead_kb: int, device: Device
) -> dict[str, Machine]:
    """What each variant runs on in one cell. A fixed window is as large as ``read_ahead_kb`` at most."""
    pages = suite.pages_of(case)
    memory = memory_pages(pages, times_memory)
    windows = [Way(fixed(window), rules="fixed", window_kb=window) for window in suite.windows_kb]
    prices = {"told": device.request_kb, "measured": device.measured_request_kb, "": DEFAULT_REQUEST_KB}
    found = {}
    for way in (*suite.ways, *windows):
        window_kb = min(way.window_kb or read_ahead_kb, read_ahead_kb)
        request_pages = max(prices[way.request] // PAGE_KB, 1)
        first_pages = device.first_request_kb // PAGE_KB if way.request == "measured" else 0
        found[way.name] = Machine(
            way.rules or way.name,
            pages,
            memory,
            window_kb // PAGE_KB,
            request_pages,
            first_request_pages=first_pages if first_pages != request_pages else 0,
        )
    return found


def run(
    suite: Suite,
    cases: Sequence[AnyCase],
    devices: Sequence[Device],
    variants: Collection[str] | None = None,
    window: str = "",
) -> list[Runs]:
    """Simulate ``cases`` on all machines that the suite has on these devices, or on those of these variants.

    ``window`` is C in place of the kernel's adaptive window. Such runs are kept apart.
    """
    directory = compiled(window).parent / "runs"
    jobs = []
    for case in cases:
        wanted = _wanted(suite, case, devices, variants)
        jobs.append(_Simulation(case, wanted, directory / f"{digest([_key(case), repr(wanted)])}.json"))
    missing = [job for job in jobs if not job.file.exists()]
    if missing:
        load(window)
        _simulate(missing, window)
    return [_read(job.file) for job in jobs]


@dataclass(frozen=True)
class _Simulation:
    case: AnyCase
    machines: dict[Machine, Clock]
    file: Path
    """Where the runs are kept."""


def _wanted(
    suite: Suite, case: AnyCase, devices: Sequence[Device], variants: Collection[str] | None
) -> dict[Machine, Clock]:
    """Each machine once, with the time of all devices that have it: those of some variants are told the device."""
    found: dict[Machine, dict[str, Device]] = {}
    for place, device in product(suite.places(case), devices):
        for variant, machine in machines(suite, case, *place, device).items():
            if variants is None or variant in variants:
                found.setdefault(machine, {})[device.name] = device
    return {machine: Clock(tuple(its_devices.values())) for machine, its_devices in found.items()}


def _simulate(missing: Sequence[_Simulation], window: str) -> None:
    """Simulate side by side what the cache lacks: the library runs without Python's lock."""
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    with working("simulating access patterns", len(missing)) as task:
        try:
            results = [pool.map(partial(_counts, job.case, window), job.machines.items()) for job in missing]
            for job, counts in zip(missing, results, strict=True):
                task.note(job.case.name)
                write_atomic(job.file, msgspec.json.encode(list(map(_Simulated, job.machines, counts))))
                task.advance()
        finally:
            # After Ctrl-C, wait for what runs right now only.
            pool.shutdown(cancel_futures=True)


def _counts(case: AnyCase, window: str, timed: tuple[Machine, Clock]) -> Counts:
    machine, clock = timed
    if isinstance(case, TraceCase):
        return simulate_trace(machine, case.trace, window, clock)
    if isinstance(case, ReportCase):
        return play(machine, case.accesses, case.reclaimed_pages, window, clock)
    return simulate(machine, case.pattern, case.count, case.passes, case.then, window, clock)


def _key(case: AnyCase) -> str:
    if isinstance(case, TraceCase):
        pages = [file.pages for file in case.trace.files]
        return digest([repr(pages), case.trace.file_of.tobytes(), case.trace.page_of.tobytes()])
    if isinstance(case, ReportCase):
        return repr((case.accesses, case.reclaimed_pages))
    return repr((case.pattern, case.count, case.passes, case.then))


@dataclass(frozen=True)
class _Simulated:
    machine: Machine
    counts: Counts


def _read(file: Path) -> Runs:
    return {run.machine: run.counts for run in msgspec.json.decode(file.read_bytes(), type=list[_Simulated])}

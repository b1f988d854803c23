# SPDX-License-Identifier: GPL-2.0-only
"""Simulating a suite. Runs that several cells have in common are made once, and kept in the cache."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path

from foliolab.files import digest, write_atomic
from foliolab.model.library import DEFAULT_REQUEST_KB, Counts, Machine, compiled, load, simulate
from foliolab.progress import Reporter
from foliolab.regret.cost import Device
from foliolab.regret.suite import PAGE_KB, Case, Suite

Runs = Mapping[Machine, Counts]
"""What a case comes to on each machine."""


def fixed(window_kb: int) -> str:
    """The variant whose window is always the same."""
    return f"fixed-{window_kb}"


def machines(suite: Suite, times_memory: float, read_ahead_kb: int, device: Device) -> dict[str, Machine]:
    """What each variant runs on in one cell. A fixed window is as large as ``read_ahead_kb`` at most."""
    # A larger memory than the file changes nothing, and the hint for random accesses reads no window.
    memory = min(suite.memory_pages(times_memory), suite.file_pages)

    def machine(rules: str, window_kb: int, request_kb: int = DEFAULT_REQUEST_KB) -> Machine:
        return Machine(rules, suite.file_pages, memory, window_kb // PAGE_KB, request_kb // PAGE_KB)

    return {
        "stock": machine("stock", read_ahead_kb),
        "series": machine("series", read_ahead_kb),
        "random": machine("random", PAGE_KB),
        "folio": machine("folio", read_ahead_kb, device.request_kb),
        "folio-default": machine("folio", read_ahead_kb),
        **{fixed(window): machine("fixed", min(window, read_ahead_kb)) for window in suite.windows_kb},
    }


def run(suite: Suite, cases: Sequence[Case], report: Reporter) -> list[Runs]:
    """Simulate ``cases`` on all machines of the suite."""
    cells = product(suite.times_memory, suite.read_ahead_kb, suite.devices)
    wanted = list(dict.fromkeys(machine for cell in cells for machine in machines(suite, *cell).values()))
    directory = compiled(report).parent / "runs"
    files = [directory / f"{digest([_key(case), repr(wanted)])}.json" for case in cases]
    missing = [(case, file) for case, file in zip(cases, files, strict=True) if not file.exists()]
    if missing:
        load()
        _simulate(missing, wanted, report)
    return [_read(file) for file in files]


def _simulate(missing: Sequence[tuple[Case, Path]], wanted: Sequence[Machine], report: Reporter) -> None:
    """Simulate side by side what the cache lacks: the library runs without Python's lock."""
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    with report.task("simulating access patterns", len(missing)) as task:
        try:
            results = [
                pool.map(
                    partial(simulate, pattern=case.pattern, count=case.count, passes=case.passes, then=case.then),
                    wanted,
                )
                for case, _ in missing
            ]
            for (case, file), counts in zip(missing, results, strict=True):
                task.note(case.name)
                _write(file, zip(wanted, counts, strict=True))
                task.advance()
        finally:
            # After Ctrl-C, wait for what runs right now only.
            pool.shutdown(cancel_futures=True)


def _key(case: Case) -> str:
    return repr((case.pattern, case.count, case.passes, case.then))


def _write(file: Path, runs: Iterable[tuple[Machine, Counts]]) -> None:
    plain = [{"machine": asdict(machine), "counts": asdict(counts)} for machine, counts in runs]
    write_atomic(file, json.dumps(plain))


def _read(file: Path) -> Runs:
    runs = {}
    for plain in json.loads(file.read_text()):
        kinds = tuple(plain["counts"].pop("kinds"))
        runs[Machine(**plain["machine"])] = Counts(**plain["counts"], kinds=kinds)
    return runs

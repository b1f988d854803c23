# SPDX-License-Identifier: GPL-2.0-only
"""Record what storage engines of the lab touch in the workloads of the experiment 'stores'. A trace for each also
gets what './lab run stores' has measured with the same seed.

example: ./lab trace store --store lmdb,sqlite --workload uniform,zipf -o traces
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from foliolab.analyse.select import group_samples
from foliolab.arch import Architecture
from foliolab.campaign.qemu_backend import QemuBackend
from foliolab.campaign.sample import OK, Sample
from foliolab.campaign.store import read_samples, store_file
from foliolab.cli.options import add_machine, machine
from foliolab.errors import NoResult, UsageError
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.machine import machine_name
from foliolab.experiment.plan import make_plan
from foliolab.experiment.spec import Scale
from foliolab.experiment.variants import choose_one
from foliolab.kernel.build import KernelRequest, build
from foliolab.progress import Reporter
from foliolab.stores.catalogue import store_disk
from foliolab.stores.disk import MOUNTED
from foliolab.table import Value
from foliolab.trace.format import Measured, Trace, write_trace
from foliolab.trace.record import record
from foliolab.vm.accel import choose
from foliolab.vm.guest import OnOutput

_EXPERIMENT = "stores"
_SCALE = "full"
_SECONDS = 900


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-o", "--output", metavar="DIRECTORY", type=Path, required=True, help="where STORE-WORKLOAD.trace go")
    add("--store", metavar="NAME,...", required=True)
    add("--workload", metavar="NAME,...", required=True)
    add("--times", type=int, default=2, help="of the measurements: the database is so many times the memory (2)")
    add("--seed", type=int, default=1, help="of random choices, and the repetition of measurements (1)")
    add("--judged-only", action="store_true", help="note in the traces that nothing may be tuned by them")
    add_machine(parser)


def handle(arguments: argparse.Namespace) -> int:
    report = Reporter()
    arch, page_size = machine(arguments)
    if not arguments.output.is_dir():
        raise UsageError(f"There is no directory {arguments.output}.")
    scale = find_experiment(_EXPERIMENT).scale(_SCALE)
    samples = read_samples(store_file())
    for store in arguments.store.split(","):
        cells = [_cell(scale, store, workload, arguments.times) for workload in arguments.workload.split(",")]
        for cell, trace in _traces(arch, page_size, cells, arguments.seed, report):
            named = cell.as_dict()
            data = store_disk(arch, store, report).hash
            same = [sample for sample in samples if sample.data == data and sample.repetition == arguments.seed]
            measured = tuple(_measured(same, cell, arch, page_size, trace.memory_bytes or 0))
            other = {"judged_only": True} if arguments.judged_only else {}
            path = arguments.output / f"{named['store']}-{named['workload']}.trace"
            write_trace(path, replace(trace, measured=measured, other={**trace.other, **other}))
            report.say(f"{path}: {trace.touches} touches, {len(measured)} measurements.")
    return 0


def _cell(scale: Scale, store: str, workload: str, times: int) -> Cell:
    """Any of the cells that do the same accesses."""
    wanted: dict[str, Value] = {"store": store, "workload": workload, "hint": "none", "times": times}
    found = [cell for cell in scale.cells if cell.matches(wanted)]
    if not found:
        raise UsageError(f"'{_EXPERIMENT}' has no workload '{workload}' of '{store}' with --times {times}.")
    return found[0]


def _traces(
    arch: Architecture, page_size: int, cells: list[Cell], seed: int, report: Reporter
) -> Iterator[tuple[Cell, Trace]]:
    """Record cells of one store in one boot."""
    experiment = find_experiment(_EXPERIMENT)
    # Recording takes no disk that is waited for.
    scale = experiment.scale("quick")
    variant = choose_one("adaptive", machine_name(arch.name, page_size))
    plan = make_plan(experiment, scale, variants=[variant], cells=cells, repetitions=1)
    backend = QemuBackend(arch, choose(arch), report)
    extras = tuple(sorted(scale.parameters.filesystems - {"ext4"}))
    kernel = build(KernelRequest(arch, variant.kernel, extras=extras, page_size=page_size), report)
    consoles = store_file().parent / "consoles"
    with backend.prepare(kernel, plan).boot(consoles) as session, report.task("recording", len(cells)) as task:
        for cell in cells:
            task.note(cell.label)
            command = experiment.command(cell, scale.parameters, seed, MOUNTED)
            place = f"{MOUNTED}/{cell.as_dict()['store']}"
            said: list[bytes] = []
            recording = record(
                session.guest,
                command,
                files=place,
                deadline_seconds=_SECONDS,
                on_output=_collector(said),
            )
            if recording.status:
                words = b"".join(said).decode(errors="replace").strip() or f"status {recording.status}"
                raise NoResult(f"{cell.label} failed: {words}")
            trace = recording.trace
            size = sum(file.pages for file in trace.files) * trace.page_size
            # What it had while it was recorded does not matter; this is what the experiment gives it.
            yield cell, replace(trace, memory_bytes=size // int(cell.as_dict()["times"]))
            task.advance()


def _collector(words: list[bytes]) -> OnOutput:
    """Keeps what goes to the error output."""

    def keep(stream: int, data: bytes) -> None:
        if stream == 2:
            words.append(data)

    return keep


def _measured(
    samples: Iterable[Sample], cell: Cell, arch: Architecture, page_size: int, least_bytes: int
) -> Iterator[Measured]:
    """What kernels came to with the same accesses, in ``least_bytes`` of memory or more."""
    groups = [
        group
        for group in group_samples(sample for sample in samples if sample.experiment == _EXPERIMENT)
        if (group.scale, group.arch, group.page_size) == (_SCALE, arch.name, page_size)
    ]
    accesses = {name: value for name, value in cell.axes if name != "read_ahead_kb"}
    for group in groups[-1:]:
        for sample in group.samples:
            if sample.outcome != OK or not Cell.of(sample.cell).matches(accesses):
                continue
            yield Measured(
                variant=sample.variant,
                read_ahead_kb=int(sample.cell["read_ahead_kb"]),
                read_bytes=int(sample.metrics["read_bytes"]),
                read_requests=int(sample.metrics["read_requests"]),
                major_faults=int(sample.metrics["major_faults"]),
                # Where little was read, what was cached does not tell what could have been.
                memory_bytes=max(int(sample.metrics["cached_bytes"]), least_bytes),
            )

# SPDX-License-Identifier: GPL-2.0-only
"""Record what storage engines of the lab touch in the workloads of the experiment 'stores'. './lab trace replay' sets
what './lab measure stores' has measured with the same seed beside what it predicts.

example: ./lab trace store --store lmdb,sqlite --workload uniform,zipf -o traces
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from foliohost.trace import Trace, write_trace
from foliolab.analyse.measured import EXPERIMENT, SCALE
from foliolab.arch import Architecture, machine_name
from foliolab.campaign.qemu_backend import QemuBackend
from foliolab.campaign.store import consoles_of, store_file
from foliolab.cli.options import add_machine, machine, names_of
from foliolab.disks.stores import MOUNTED, store_disk
from foliolab.errors import NoResult, UsageError
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import make_plan
from foliolab.experiment.spec import Scale
from foliolab.experiment.variants import choose_one
from foliolab.kernel.build import KernelRequest, build
from foliolab.progress import say, working
from foliolab.toml import Value
from foliolab.trace.record import record
from foliolab.vm.accel import choose

_SECONDS = 900
_TIMES = 2
"""Of the measurements: the database is so many times the memory."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-o", "--output", metavar="DIRECTORY", type=Path, required=True, help="where STORE-WORKLOAD.trace go")
    add("--store", metavar="NAME,...", required=True)
    add("--workload", metavar="NAME,...", required=True)
    add("--seed", type=int, default=1, help="of random choices, and the repetition of measurements (1)")
    add("--judged-only", action="store_true", help="note in the traces that nothing may be tuned by them")
    add_machine(parser)


def handle(arguments: argparse.Namespace) -> int:
    arch, page_size = machine(arguments)
    if not arguments.output.is_dir():
        raise UsageError(f"There is no directory {arguments.output}.")
    scale = find_experiment(EXPERIMENT).scale(SCALE)
    other: dict[str, str | bool] = {"judged_only": True} if arguments.judged_only else {}
    stores, workloads = names_of("--store", arguments.store), names_of("--workload", arguments.workload)
    # Whatever is not known is told before anything is recorded.
    planned = {store: [_cell(scale, store, workload) for workload in workloads] for store in stores}
    for store, cells in planned.items():
        other["data"] = store_disk(arch, store).hash
        for cell, trace in _traces(arch, page_size, cells, arguments.seed):
            named = cell.as_dict()
            path = arguments.output / f"{named['store']}-{named['workload']}.trace"
            write_trace(path, replace(trace, other={**trace.other, **other}))
            say(f"{path}: {trace.touches} touches.")
    return 0


def _cell(scale: Scale, store: str, workload: str) -> Cell:
    """Any of the cells that do the same accesses."""
    wanted: dict[str, Value] = {"store": store, "workload": workload, "hint": "none", "times": _TIMES}
    found = [cell for cell in scale.cells if cell.matches(wanted)]
    if not found:
        raise UsageError(f"'{EXPERIMENT}' has no workload '{workload}' of '{store}'.")
    return found[0]


def _traces(arch: Architecture, page_size: int, cells: list[Cell], seed: int) -> Iterator[tuple[Cell, Trace]]:
    experiment = find_experiment(EXPERIMENT)
    # Recording takes no disk that is waited for.
    scale = experiment.scale("quick")
    variant = choose_one("adaptive", machine_name(arch.name, page_size))
    plan = make_plan(experiment, scale, variants=[variant], cells=cells, repetitions=1)
    backend = QemuBackend(arch, choose(arch))
    extras = tuple(scale.parameters.filesystems - {"ext4"})
    kernel = build(KernelRequest(arch, variant.kernel, extras=extras, page_size=page_size))
    consoles = consoles_of(store_file())
    said = bytearray()

    def keep(stream: int, data: bytes) -> None:
        if stream == 2:
            said.extend(data)

    with backend.prepare(kernel, plan).boot(consoles) as session, working("recording", len(cells)) as task:
        for cell in cells:
            task.note(cell.label)
            command = experiment.command(cell, scale.parameters, seed, MOUNTED)
            place = f"{MOUNTED}/{cell.as_dict()['store']}"
            said.clear()
            trace, status = record(session.guest, command, files=place, deadline_seconds=_SECONDS, on_output=keep)
            if status:
                words = said.decode(errors="replace").strip() or f"status {status}"
                raise NoResult(f"{cell.label} failed: {words}")
            # What it had while it was recorded does not matter; this is what the experiment gives it.
            memory_bytes = trace.pages * trace.page_size // _TIMES
            yield cell, replace(trace, memory_bytes=memory_bytes)
            task.advance()

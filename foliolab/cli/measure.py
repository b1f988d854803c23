# SPDX-License-Identifier: GPL-2.0-only
"""Measure an experiment. Killed at any moment, the same command goes on where it was.

example: ./lab measure sparse-mmap --variant unpatched,published --cell pattern=random
"""

import argparse
import json
from typing import Any

from foliolab.campaign.measure import BACKENDS, Request, default_profile, measure
from foliolab.campaign.runner import failure_of
from foliolab.cli import options
from foliolab.errors import UsageError
from foliolab.report.expected import check
from foliolab.report.section import sections
from foliolab.report.terminal import print_section, terminal
from foliolab.report.view import view_of
from foliolab.vm.accel import HOST


def add_plan(parser: argparse.ArgumentParser) -> None:
    """What of an experiment is measured, as ``request_of`` takes it."""
    parser.add_argument("experiment", help="its name, or the path of a .toml file")
    options.add_sizes(parser)
    parser.add_argument("--variant", metavar="V,...", help="only these variants")
    options.add_kernels(parser, "measure on this kernel")
    options.add_cells(parser)
    text = "count instructions, cycles, and misses of TLBs and the last cache, where the processor can"
    parser.add_argument("--hardware-counters", action="store_true", help=text)


def request_of(arguments: argparse.Namespace, backend: str, **others: Any) -> Request:
    """A request for what ``add_plan`` has asked for, with others of its fields."""
    return Request(
        experiment=arguments.experiment,
        scale=arguments.scale,
        variants=options.names_of("--variant", arguments.variant) or None,
        kernels=arguments.kernels,
        cells=arguments.cell,
        repetitions=arguments.repetitions,
        profile=arguments.profile or default_profile(backend),
        backend=backend,
        hardware_counters=arguments.hardware_counters,
        **others,
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    text = "qemu: a kernel in a guest; host: on the machine of --host; model: no kernel, but what the model of its"
    text += " page cache says (default: qemu)"
    parser.add_argument("--backend", metavar="|".join(BACKENDS), help=text)
    options.add_host(parser)
    options.add_accelerator(parser)
    options.add_device(parser)
    options.add_machine(parser)
    options.add_workers(parser)
    options.add_profile(parser, None)
    options.add_json(parser, '{"samples": [...]}')
    text = "exit with 1 if an expectation of the experiment fails or the model is too far off"
    parser.add_argument("--check", action="store_true", help=text)


def requested(arguments: argparse.Namespace) -> Request:
    arch, page_size = options.machine(arguments)
    on_host = arguments.host is not None
    if on_host and arguments.backend not in (None, HOST):
        raise UsageError(f"--host goes with no backend but {HOST}.")
    if arguments.backend == HOST and not on_host:
        raise UsageError(f"The backend {HOST} takes --host and the name of a machine.")
    of_machine = (arguments.no_watchdog, arguments.no_kexec, arguments.though_in_use)
    if not on_host and (arguments.spare is not None or any(of_machine)):
        raise UsageError("--spare, --no-watchdog, --no-kexec and --though-in-use are about the machine of --host.")
    backend = HOST if on_host else arguments.backend or "qemu"
    return request_of(
        arguments,
        backend,
        arch=arch.name,
        page_size=page_size,
        accelerator=arguments.accelerator,
        device=arguments.device,
        shard=arguments.shard or (1, 1),
    )


def handle(arguments: argparse.Namespace) -> int:
    with options.workers(arguments) as found:
        measured = measure(requested(arguments), found)
    view, comparisons = view_of(measured)
    if arguments.json:
        print(json.dumps({"samples": [sample.to_json() for sample in measured.samples]}, indent=1))
    else:
        console = terminal()
        for shown in sections([view], comparisons):
            print_section(console, shown)
    if error := failure_of(measured.samples):
        raise error
    if arguments.check:
        check(view.verdicts, comparisons)
    return 0

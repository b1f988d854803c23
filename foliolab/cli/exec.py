# SPDX-License-Identifier: GPL-2.0-only
"""Run a program of your own in a guest; its output and exit status become ours. It is linked statically, or has a
root directory from --packages or --root.

example: ./lab exec --variant off,adaptive --read-ahead-kb 128,4096 --data ./db --json counts.json --packages
libsqlite3-0 --copy ./my-test -- /files/my-test /data
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from foliolab.arch import machine_name
from foliolab.campaign.program import Program, ProgramCell, Run, boots, run_boot, spooled_input
from foliolab.cli.in_guest import Asked, Guests, add_program, pass_on
from foliolab.cli.options import add_extras, add_kernels, add_profile, limits_of, names_of, require_room_for
from foliolab.errors import GuestCrashed, UsageError
from foliolab.experiment.variants import Variant, choose, load_variants, on_kernels
from foliolab.files import write_atomic
from foliolab.kernel.built import BuiltKernel
from foliolab.progress import say
from foliolab.vm.data import keep
from foliolab.vm.scratch import scratch_directory

_DEFAULT = "adaptive"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(
        interrupted="Interrupted; the guest has ended and its disk is not kept."
        " A file of --json has the cells that had ended before."
    )
    add = parser.add_argument
    add("--variant", help=f"settings of our kernel, or 'unpatched'; several with commas ({_DEFAULT})")
    add_kernels(parser, "run on this kernel, as it boots unless --variant says otherwise")
    add("--read-ahead-kb", metavar="KIB", help="of the guest's disks; several with commas (the kernel's own)")
    add("--keep", metavar="IMAGE", type=Path, help="save the disk on /data after the program, unless it failed")
    add("--force", action="store_true", help="overwrite the image of --keep")
    add("--json", metavar="FILE", type=Path, help="write what the kernel counted to FILE")
    add("--console", metavar="FILE", type=Path, help="write the kernel's log to FILE")
    add_profile(parser)
    add_extras(parser)
    add_program(parser)


def handle(arguments: argparse.Namespace) -> int:
    limits = limits_of(arguments.read_ahead_kb)
    asked = Asked.by(arguments)
    variants = _variants(asked)
    if arguments.read_ahead_kb and not asked.data and not asked.root:
        raise UsageError("--read-ahead-kb is of disks; give the guest one with --data, --data-size, --disk or a root.")
    if arguments.keep and not asked.data:
        raise UsageError("--keep is of the data disk; give the guest one with --data, --data-size or --disk.")
    for option in ("keep", "json", "console"):
        require_room_for(f"--{option}", getattr(arguments, option))
    if arguments.keep and arguments.keep.exists() and not arguments.force:
        raise UsageError(f"--keep: {arguments.keep} exists already; --force overwrites it.")
    files = asked.files()
    planned = boots(variants, limits)
    names = [cells[0].variant.kernel for cells in planned]
    kernels = asked.build(names, arguments.profile, arguments.extras)
    _require_ours(variants, kernels)
    guests = asked.guests(kernels, ["measure"], files)
    facts: dict[str, Any] = {
        "program": asked.argv,
        "arch": asked.arch.name,
        "page_size": asked.page_size,
        "memory_bytes": asked.memory_mib << 20,
        "cpus": arguments.cpus,
        "backend": asked.accelerator.backend,
        "device": asked.arguments.device,
    }
    with scratch_directory() as scratch:
        program = asked.program(guests, scratch, spooled_input(scratch))
        runs = _run(program, planned, kernels, guests, scratch, arguments, facts)
        failed = next((run for run in runs if run.status), None)
        if arguments.keep and failed:
            say(f"The disk is not kept in {arguments.keep}, because the program failed.")
        elif arguments.keep:
            keep(program.disks[0], arguments.keep, arguments.force)
    return _judge(runs, failed)


def _variants(asked: Asked) -> tuple[Variant, ...]:
    """The variants asked for; UsageError for one that the machine cannot have."""
    named, kernels = asked.arguments.variant, asked.arguments.kernels
    chosen = choose(names_of("--variant", _DEFAULT if named is None and not kernels else named), load_variants())
    if kernels:
        chosen = on_kernels(chosen, kernels, asked=True)
    for variant in chosen:
        if obstacle := variant.obstacle(machine_name(asked.arch.name, asked.page_size)):
            raise UsageError(obstacle)
    return chosen


def _require_ours(variants: Sequence[Variant], kernels: Mapping[str, BuiltKernel]) -> None:
    """UsageError for a variant that takes our code on a kernel that has none of it."""
    for variant in variants:
        if sentence := variant.lacking(kernels[variant.kernel].ours):
            raise UsageError(sentence)


def _run(
    program: Program,
    planned: list[list[ProgramCell]],
    kernels: Mapping[str, BuiltKernel],
    guests: Guests,
    scratch: Path,
    arguments: argparse.Namespace,
    facts: dict[str, Any],
) -> list[Run]:
    """Run all boots, and write down what is known after each cell."""
    several = sum(map(len, planned)) > 1
    runs: list[Run] = []
    consoles = []

    def note() -> None:
        if arguments.json:
            cells = [run.facts for run in runs]
            write_atomic(arguments.json, json.dumps({**facts, "cells": cells}, indent=1, ensure_ascii=True) + "\n")

    def before(cell: ProgramCell) -> None:
        if several:
            say(f"--- {cell}")

    def after(run: Run) -> None:
        runs.append(run)
        if run.job.signal:
            say(run.job.outcome.sentence)
        if run.remark:
            say(run.remark)
        note()

    note()  # what another command has left there is not of these runs
    try:
        for number, cells in enumerate(planned):
            consoles.append(scratch / f"console-{number}")
            name = cells[0].variant.kernel
            guest = guests.configs[name]
            run_boot(program, kernels[name], guest, cells, consoles[-1], before=before, on_output=pass_on, after=after)
    finally:
        if arguments.console:
            write_atomic(arguments.console, b"".join(path.read_bytes() for path in consoles if path.exists()))
    return runs


def _judge(runs: list[Run], failed: Run | None) -> int:
    """The status of the first cell that failed; GuestCrashed if none did and a kernel complained."""
    complained = next((run for run in runs if run.warnings), None)
    if complained:
        sentence = f"The guest's kernel complained ({complained.cell}): {complained.warnings[0]}"
        if not failed:
            raise GuestCrashed(sentence)
        say(sentence)
    return failed.status if failed else 0

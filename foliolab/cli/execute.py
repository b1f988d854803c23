# SPDX-License-Identifier: GPL-2.0-only
"""``lab exec``: the user's own program in a guest."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from foliolab.arch import Architecture
from foliolab.cli.execute_options import (
    add_options,
    limits_of,
    pairs_of,
    require_ours,
    require_room_for,
    size_of,
    stored_disk,
    variants_of,
)
from foliolab.cli.machine import machine
from foliolab.errors import GuestCrashed, UsageError
from foliolab.files import write_atomic
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.config import OPTIONAL
from foliolab.kernel.series import check_names
from foliolab.program.cells import Cell, boots
from foliolab.program.record import Run
from foliolab.program.run import Mounted, Program, run_boot
from foliolab.program.spool import spooled_input
from foliolab.program.static import require_static
from foliolab.progress import Reporter
from foliolab.vm.accel import Wanted, choose
from foliolab.vm.data import Data, Filled, data_of, keep, require_no_image
from foliolab.vm.guest import GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.memory import require_memory
from foliolab.vm.root import Directory, Packages, Root
from foliolab.vm.scratch import scratch_directory

__all__ = ["add_parser", "handle"]


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "run a program of your own in a guest; its output and exit status become ours"
    parser = commands.add_parser(
        "exec",
        help=text,
        description=f"{text.capitalize()}. It is linked statically, or has a root directory from --packages or --root.",
        epilog="example: ./lab exec --variant off,adaptive --read-ahead-kb 128,4096 --data ./db --json counts.json"
        " --packages libsqlite3-0 --copy ./my-test -- /files/my-test /data",
    )
    add_options(parser, get_args(Wanted))
    parser.set_defaults(
        handler=handle,
        interrupted="Interrupted; the guest has ended and its disk is not kept. "
        "A file of --json has the cells that had ended before.",
    )


def handle(arguments: argparse.Namespace) -> int:
    report = Reporter()
    arch, page_size = machine(arguments)
    variants = variants_of(arguments.variant, arguments.kernels, arch, page_size)
    limits = limits_of(arguments.read_ahead_kb)
    memory_mib = size_of(arguments.memory) >> 20
    environment = pairs_of(arguments.env)
    if arguments.cpus < 1:
        raise UsageError("A guest has at least one CPU.")
    data, root = _data(arguments), _root(arguments)
    if arguments.read_ahead_kb and not data and not root:
        raise UsageError("--read-ahead-kb is of disks; give the guest one with --data, --data-size, --disk or a root.")
    if arguments.keep and not data:
        raise UsageError("--keep is of the data disk; give the guest one with --data, --data-size or --disk.")
    for option in ("keep", "json", "console"):
        require_room_for(f"--{option}", getattr(arguments, option))
    if arguments.keep:
        require_no_image(arguments.keep, arguments.force)
    argv, files = _program(arguments, root, arch)
    accelerator = choose(arch, arguments.accelerator)
    extras = {*arguments.extras} | {each.filesystem for each in (data, root) if each and each.filesystem in OPTIONAL}
    planned = boots(variants, limits)
    wanted = [
        KernelRequest(arch, name, arguments.profile, tuple(sorted(extras)), page_size=page_size)
        for name in dict.fromkeys(cells[0].variant.kernel for cells in planned)
    ]
    check_names([request.kernel for request in wanted], report)
    kernels = {request.kernel: build(request, report) for request in wanted}
    require_ours(variants, kernels)
    programs = guest_programs(arch, report)
    ours = {name: programs[name] for name in ("init", "measure")}
    images = {name: initramfs(ours, files, kernel.modules) for name, kernel in kernels.items()}
    for name, kernel in kernels.items():
        require_memory(arch, memory_mib, kernel.image, images[name])
    first = planned[0][0].variant.kernel
    helper = initramfs({name: programs[name] for name in ("init", "copy-tree")}, modules=kernels[first].modules)
    bare = GuestConfig(arch, kernels[first].image, helper, accelerator)
    config = replace(bare, memory_mib=memory_mib, cpus=arguments.cpus)
    facts: dict[str, Any] = {
        "program": argv,
        "arch": arch.name,
        "page_size": page_size,
        "memory_bytes": memory_mib << 20,
        "cpus": arguments.cpus,
        "backend": accelerator.backend,
    }
    with scratch_directory() as scratch:
        mounted = []
        if data:
            mounted.append(Mounted("data", data.prepare(bare, scratch, report), data.filesystem))
        if root:
            mounted.append(Mounted("root", root.prepare(arch, bare, scratch, report), root.filesystem))
        # A deadline of the user's is meant as it stands, not for a real machine.
        deadline = arguments.timeout and arguments.timeout / accelerator.patience
        program = Program(tuple(argv), environment, deadline, tuple(mounted), spooled_input(scratch, report))
        runs = _run(program, planned, kernels, images, config, scratch, report, arguments, facts)
        failed = next((run for run in runs if run.status), None)
        if arguments.keep and failed:
            report.say(f"The disk is not kept in {arguments.keep}, because the program failed.")
        elif arguments.keep:
            keep(mounted[0].disk, arguments.keep, arguments.force, report)
    return _judge(runs, failed, report)


def _run(
    program: Program,
    planned: list[list[Cell]],
    kernels: dict[str, BuiltKernel],
    images: dict[str, Path],
    config: GuestConfig,
    scratch: Path,
    report: Reporter,
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

    def before(cell: Cell) -> None:
        if several:
            report.say(f"--- {cell}")

    def after(run: Run) -> None:
        runs.append(run)
        if run.job.signal:
            report.say(run.job.outcome.sentence)
        note()

    note()  # what another command has left there is not of these runs
    try:
        for number, cells in enumerate(planned):
            consoles.append(scratch / f"console-{number}")
            name = cells[0].variant.kernel
            config = replace(config, initramfs=images[name])
            run_boot(
                program, kernels[name], config, cells, consoles[-1], before=before, on_output=_pass_on, after=after
            )
    finally:
        if arguments.console:
            write_atomic(arguments.console, b"".join(path.read_bytes() for path in consoles if path.exists()))
    return runs


def _judge(runs: list[Run], failed: Run | None, report: Reporter) -> int:
    """The status of the first cell that failed; GuestCrashed if none did and a kernel complained."""
    complained = next((run for run in runs if run.warnings), None)
    if complained:
        sentence = f"The guest's kernel complained ({complained.cell}): {complained.warnings[0]}"
        if not failed:
            raise GuestCrashed(sentence)
        report.say(sentence)
    return failed.status if failed else 0


def _pass_on(stream: int, data: bytes) -> None:
    ours = sys.stdout.buffer if stream == 1 else sys.stderr.buffer
    ours.write(data)
    ours.flush()


def _data(arguments: argparse.Namespace) -> Data | None:
    size = size_of(arguments.data_size) if arguments.data_size else None
    if arguments.disk:
        if arguments.data or size or arguments.filesystem:
            raise UsageError("--disk makes a data disk of its own; it does not go with --data or --data-size.")
        return Filled(stored_disk(arguments.disk))
    return data_of(arguments.data, size, arguments.filesystem)


def _root(arguments: argparse.Namespace) -> Root | None:
    if arguments.packages:
        return Packages(tuple(name.strip() for name in arguments.packages.split(",") if name.strip()))
    return Directory(arguments.root) if arguments.root else None


def _program(arguments: argparse.Namespace, root: Root | None, arch: Architecture) -> tuple[list[str], dict[str, Path]]:
    """Its command line in the guest, and the files to put there: guest path -> host path."""
    for file in arguments.copy:
        if not file.is_file():
            raise UsageError(f"There is no file {file} to copy.")
    names = [file.name for file in arguments.copy]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--copy: there would be two files /files/{twice}.")
    files = {f"/files/{file.name}": file for file in arguments.copy}
    name = arguments.program
    if not root:
        require_static(Path(name), arch)
        name = f"/program/{PurePosixPath(name).name}"
        files[name] = Path(arguments.program)
    return [name, *arguments.arguments], files

# SPDX-License-Identifier: GPL-2.0-only
"""``lab trace record``: a program in a guest, and every touch of a page of its mapped files."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import get_args

from foliolab.cli import trace_live
from foliolab.cli.execute_options import limits_of, pairs_of, require_room_for, size_of, stored_disk, variants_of
from foliolab.cli.machine import add_machine, machine
from foliolab.errors import NoResult, UsageError
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.config import OPTIONAL
from foliolab.program.cells import Cell, boots
from foliolab.program.record import Run
from foliolab.program.run import Mounted, Program, run_boot
from foliolab.program.static import require_static
from foliolab.progress import Reporter
from foliolab.trace.format import Measured, write_trace
from foliolab.trace.record import MOST_TOUCHES, WINDOW, Recording, record, require_bounds
from foliolab.vm.accel import Wanted, choose
from foliolab.vm.data import Data, Filled, data_of
from foliolab.vm.disk import DATA_FILE, Filesystem
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.memory import require_memory
from foliolab.vm.root import Packages
from foliolab.vm.scratch import scratch_directory


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "record which pages of its mapped files a program touches, in a guest or here"
    parser = verbs.add_parser(
        "record",
        help=text,
        description=f"{text.capitalize()}, in order. A guest records every touch of the files on /data, and slows the"
        " program down. The program's output and exit status become ours.",
        epilog="example: ./lab trace record --disk xfs:1G -o scan.trace --variant off,adaptive --"
        " ./sparse-mmap --file /data/file",
    )
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", type=Path, required=True, help="where the trace goes")
    add("--disk", metavar="FILESYSTEM:SIZE", help=f"a disk on /data that a file of SIZE fills, {DATA_FILE}: xfs:2G")
    add("--data", metavar="DIR|IMAGE", type=Path, help="a copy of DIR, or a disk that exec has kept, on /data")
    add("--data-size", metavar="SIZE", help="of the disk on /data, which is empty without --data")
    add("--filesystem", choices=get_args(Filesystem), help="of that disk (ext4)")
    add("--packages", metavar="NAMES", help="a root directory of these Debian packages, with commas")
    add("--copy", metavar="FILE", type=Path, action="append", default=[], help="put FILE into /files")
    add("--env", metavar="NAME=VALUE", action="append", default=[], help="for the program; can be repeated")
    add("--memory", default="1G", help="of the guest (default: 1G)")
    add("--cpus", type=int, default=1, help="of the guest (default: 1)")
    add("--window", type=int, default=WINDOW, help="touches within so many pages may be missing (default: 16)")
    add("--most", type=int, default=MOST_TOUCHES, help=f"touches, and none after them (default: {MOST_TOUCHES})")
    add(
        "--variant", metavar="NAME,...", help="run it afterwards with these, too, and put what was counted in the trace"
    )
    add("--read-ahead-kb", metavar="KIB,...", help="of those runs (the kernel's own)")
    add("--timeout", type=float, metavar="SECONDS", help="end the guest if a run takes longer (default: never)")
    add("--accelerator", choices=get_args(Wanted), default="auto")
    add_machine(parser)
    add("program", nargs="?", help="a static program of this machine's, or with --packages a program of theirs")
    add("arguments", nargs=argparse.REMAINDER, default=[], help="its arguments")
    trace_live.add_options(parser)

    def handle(arguments: argparse.Namespace) -> int:
        trace_live.require_place(arguments, parser)
        return trace_live.handle(arguments) if arguments.live else handle_guest(arguments)

    parser.set_defaults(
        handler=handle, interrupted="Interrupted; a trace is written only once the recorded program has ended."
    )


def handle_guest(arguments: argparse.Namespace) -> int:
    report = Reporter()
    arch, page_size = machine(arguments)
    planned: list[list[Cell]] = []
    if arguments.variant:
        planned = boots(variants_of(arguments.variant, (), arch, page_size), limits_of(arguments.read_ahead_kb))
    elif arguments.read_ahead_kb:
        raise UsageError("--read-ahead-kb is of the runs that --variant asks for.")
    memory_mib = size_of(arguments.memory) >> 20
    if arguments.cpus < 1:
        raise UsageError("A guest has at least one CPU.")
    require_bounds(arguments.window, arguments.most)
    require_room_for("--output", arguments.output)
    for file in arguments.copy:
        if not file.is_file():
            raise UsageError(f"There is no file {file} to copy.")
    data = _data(arguments)
    names = tuple(name.strip() for name in (arguments.packages or "").split(",") if name.strip())
    root = Packages(names) if names else None
    argv = [arguments.program, *arguments.arguments]
    files = {f"/files/{file.name}": file for file in arguments.copy}
    if not root:
        require_static(Path(arguments.program), arch)
        argv[0] = f"/program/{PurePosixPath(arguments.program).name}"
        files[argv[0]] = Path(arguments.program)

    accelerator = choose(arch, arguments.accelerator)
    extras = {each.filesystem for each in (data, root) if each and each.filesystem in OPTIONAL}
    kernels = {
        name: build(KernelRequest(arch, name, extras=tuple(sorted(extras)), page_size=page_size), report)
        for name in dict.fromkeys(["patched", *(cells[0].variant.kernel for cells in planned)])
    }
    programs = guest_programs(arch, report)
    image = initramfs({name: programs[name] for name in ("init", "measure", "touches")}, files)
    for kernel in kernels.values():
        require_memory(arch, memory_mib, kernel.image, image)
    helper = initramfs({name: programs[name] for name in ("init", "copy-tree")})
    bare = GuestConfig(arch, kernels["patched"].image, helper, accelerator)
    config = replace(bare, initramfs=image, memory_mib=memory_mib, cpus=arguments.cpus)
    with scratch_directory() as scratch:
        mounted = [Mounted("data", data.prepare(bare, scratch, report), data.filesystem)]
        if root:
            mounted.append(Mounted("root", root.prepare(arch, bare, scratch, report), root.filesystem))
        deadline = arguments.timeout and arguments.timeout / accelerator.patience
        program = Program(tuple(argv), pairs_of(arguments.env), deadline, tuple(mounted), None)
        recording = _record(program, config, scratch, arguments.window, arguments.most)
        trace = replace(recording.trace, program=program.argv)
        write_trace(arguments.output, trace)
        report.say(_words(recording))
        if planned and not recording.status:
            runs = _measure(program, planned, kernels, config, scratch)
            write_trace(arguments.output, replace(trace, measured=tuple(map(_measured, runs))))
    return recording.status


def _data(arguments: argparse.Namespace) -> Data:
    size = size_of(arguments.data_size) if arguments.data_size else None
    if arguments.disk and (arguments.data or size or arguments.filesystem):
        raise UsageError("--disk makes a data disk of its own; it does not go with --data or --data-size.")
    data = (
        Filled(stored_disk(arguments.disk)) if arguments.disk else data_of(arguments.data, size, arguments.filesystem)
    )
    if not data:
        raise UsageError("Only files on /data are recorded; give the guest a disk with --disk, --data or --data-size.")
    return data


def _record(program: Program, config: GuestConfig, scratch: Path, window: int, most: int) -> Recording:
    # The runs that are measured begin with the same data.
    disks = tuple(replace(disk, keep_writes=False) for disk in program.disks)
    with Guest(replace(config, disks=disks), scratch / "console") as guest:
        program.mount(guest)
        return record(
            guest,
            program.command,
            window=window,
            most=most,
            environment=program.whole_environment,
            deadline_seconds=program.deadline_seconds,
            on_output=_pass_on,
        )


def _measure(
    program: Program, planned: list[list[Cell]], kernels: dict[str, BuiltKernel], config: GuestConfig, scratch: Path
) -> list[Run]:
    """The program without being recorded, in every cell; its output is that of the recorded run."""
    runs: list[Run] = []
    for cells in planned:
        run_boot(
            program,
            kernels[cells[0].variant.kernel],
            config,
            cells,
            scratch / "console",
            before=lambda cell: None,
            on_output=lambda stream, data: None,
            after=runs.append,
        )
    return runs


def _measured(run: Run) -> Measured:
    facts = run.facts
    if run.status or facts["read_bytes"] is None or facts["major_faults"] is None or run.read_ahead_kb is None:
        raise NoResult(f"The program failed, or was not counted, without being recorded ({run.cell}).")
    return Measured(
        variant=run.cell.variant.name,
        read_ahead_kb=run.read_ahead_kb,
        read_bytes=facts["read_bytes"],
        read_requests=facts["read_requests"],
        major_faults=facts["major_faults"],
    )


def _words(recording: Recording) -> str:
    trace = recording.trace
    words = f"{trace.touches} touches of {len(trace.files)} files."
    if trace.lost:
        words += f" {trace.lost} were lost, because the kernel's buffer was full."
    if recording.cut:
        words += f" {recording.cut} more came after --most."
    return words


def _pass_on(stream: int, data: bytes) -> None:
    ours = sys.stdout.buffer if stream == 1 else sys.stderr.buffer
    ours.write(data)
    ours.flush()

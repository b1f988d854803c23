# SPDX-License-Identifier: GPL-2.0-only
"""Start here: what sparse mmap access reads before and after, in a model at once and then on a real 6.12 kernel."""

import argparse
import json
import re
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from foliolab.arch import NATIVE, machine_name
from foliolab.campaign.measure import Request, measure
from foliolab.campaign.runner import failure_of
from foliolab.errors import NoResult
from foliolab.experiment.load import find_experiment
from foliolab.experiment.variants import choose_one
from foliolab.files import results_directory, write_atomic
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.code import code_of
from foliolab.kernel.name import PATCHED
from foliolab.report.reads import EVENTS, PICTURED, READ_AHEAD_KB, RECORDED, Panel, RecordedReads, parse
from foliolab.report.section import of_view
from foliolab.report.terminal import print_section, terminal
from foliolab.report.view import view_of
from foliolab.vm.accel import choose
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.switches import switched

# The file is larger than what memory can hold of it, and windows large enough to be seen.
_FILE_BYTES = 128 << 20
_MEMORY_MIB = 96
_PANELS = {"off": "Linux 6.12", "adaptive": "with the adaptive window"}
_DISK = "254:0"  # /dev/vda
_TRACING = "/sys/kernel/tracing"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--picture", metavar="FILE", type=Path, help="write a picture of the reads (SVG), and no more")


def handle(arguments: argparse.Namespace) -> int:
    if arguments.picture:
        # These take a second, which the rest of the demo does not need.
        from foliolab.report.pictures import reads_picture
        from foliolab.report.svg import to_svg

        found = record()
        write_atomic(results_directory() / RECORDED, json.dumps(asdict(found)))
        write_atomic(arguments.picture, to_svg(reads_picture(found)))
        return 0
    console = terminal()
    console.print("A model of the page cache says:\n")
    _show(console, Request("sparse-mmap", scale="demo", backend="model"))
    console.print("\nNow the kernel itself, which may have to be built first.\n")
    _show(console, Request("sparse-mmap", scale="demo"))
    print("Next: './lab measure sparse-mmap' for the full table, './lab exec -- ./program' for your own program.")
    return 0


def _show(console: Console, request: Request) -> None:
    """Measure and print; LabError if something failed."""
    measured = measure(request)
    print_section(console, of_view(view_of(measured)[0]))
    if error := failure_of(measured.samples):
        raise error


def record() -> RecordedReads:
    """What a kernel reads for the same touches without and with the adaptive window, measured in one boot.

    NoResult if the trace lost events, as its buffer was too small, or has none.
    """
    accelerator = choose(NATIVE, "auto")
    kernel = build(KernelRequest(NATIVE, PATCHED))
    bare = GuestConfig(NATIVE, kernel.image, initramfs(guest_programs(NATIVE)), accelerator)
    disk = DataDisk("ext4", _FILE_BYTES).prepare(bare)
    config = replace(bare, memory_mib=_MEMORY_MIB, disks=(disk,))
    panels = []
    with tempfile.TemporaryDirectory(prefix="foliolab-") as scratch, Guest(config, Path(scratch, "console")) as guest:
        guest.run([":mount", "/dev/vda", "/data", "ext4", "ro"]).checked()
        settings = {"/sys/block/vda/queue/read_ahead_kb": str(READ_AHEAD_KB), f"{_TRACING}/buffer_size_kb": "12288"}
        settings |= {f"{_TRACING}/events/filemap/mm_filemap_{event}/enable": "1" for event in EVENTS}
        for file, value in settings.items():
            guest.run([":write", file, value]).checked()
        for name, title in _PANELS.items():
            variant = choose_one(name, machine_name(NATIVE.name, guest.ready.page_size))
            guest.run(switched(variant.switches)).checked()
            guest.run([":write", f"{_TRACING}/trace", ""]).checked()
            probe = ["sparse-mmap", "--file", DATA_FILE, "--fraction", "0.01", "--drop-caches"]
            touched = json.loads(guest.run(probe).checked().stdout)["floor_bytes"]
            trace = guest.run([":read", f"{_TRACING}/trace"]).checked().stdout.decode()
            held, written = re.findall(r"entries-in-buffer/entries-written: (\d+)/(\d+)", trace)[0]
            if held != written:
                raise NoResult(f"The trace of '{name}' has lost events: {held} of {written} are left.")
            reads = parse(trace, _DISK, guest.ready.page_size)
            if not reads.runs:
                raise NoResult(f"The trace of '{name}' has no reads of {DATA_FILE}.")
            panels.append(Panel(title, reads))
    return RecordedReads(
        panels=tuple(panels),
        file_bytes=_FILE_BYTES,
        touched_bytes=touched,
        kernel=kernel.hash,
        code=code_of(kernel.name, kernel.version, find_experiment(PICTURED).unaffected_by),
        backend=accelerator.backend,
    )

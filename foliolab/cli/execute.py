# SPDX-License-Identifier: GPL-2.0-only
"""``lab exec``: the user's own program in a guest."""

import argparse
import struct
import sys
import tempfile
from pathlib import Path
from typing import cast, get_args

from foliolab.arch import Architecture
from foliolab.cli.machine import add_machine, machine
from foliolab.errors import UsageError
from foliolab.experiment.machine import machine_name
from foliolab.experiment.sizes import parse_size
from foliolab.experiment.variants import choose_one
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.config import OPTIONAL, PROFILES
from foliolab.progress import Reporter
from foliolab.vm.accel import Wanted, choose
from foliolab.vm.disk import DATA_FILE, DataDisk, Filesystem
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.switches import Switches

_FILESYSTEMS = get_args(Filesystem)
_PT_INTERP = 3


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "run a static program in a guest; its output and exit status become ours"
    parser = commands.add_parser(
        "exec",
        help=text,
        description=f"{text.capitalize()}. With --disk, the guest has a file of that size at {DATA_FILE}.",
        epilog="example: ./lab exec --variant series --disk ext4:2G -- ./my-database-test --file /data/file",
    )
    parser.add_argument("--variant", default="folio", help="settings of our kernel, or 'unpatched' (default: folio)")
    parser.add_argument("--memory", default="1G", help="of the guest (default: 1G)")
    parser.add_argument("--cpus", type=int, default=1, help="of the guest (default: 1)")
    parser.add_argument("--disk", metavar="FILESYSTEM:SIZE", help=f"{' or '.join(_FILESYSTEMS)}, for example ext4:2G")
    parser.add_argument("--read-ahead-kb", type=int, help="of the disk (default: the kernel's)")
    parser.add_argument(
        "--copy", metavar="FILE", type=Path, action="append", default=[], help="put FILE into /files too"
    )
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="end the guest after that (default: never)")
    parser.add_argument("--accelerator", choices=get_args(Wanted), default="auto")
    add_machine(parser)
    parser.add_argument("--profile", choices=PROFILES, default="lab", help="debug: a kernel with KASAN and lockdep")
    parser.add_argument(
        "--with", dest="extras", choices=OPTIONAL, action="append", default=[], help="build this in too"
    )
    parser.add_argument("program", type=Path, help="a statically linked program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, default=[], help="its arguments")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    report = Reporter()
    arch, page_size = machine(arguments)
    variant = choose_one(arguments.variant, machine_name(arch.name, page_size))
    memory_bytes = _size(arguments.memory)
    if memory_bytes < 1 << 20:
        raise UsageError(f"A guest of {arguments.memory} is too small; give at least 1M.")
    if arguments.cpus < 1:
        raise UsageError("A guest has at least one CPU.")
    if arguments.read_ahead_kb is not None and not arguments.disk:
        raise UsageError("--read-ahead-kb is of a disk; give it one with --disk.")
    for file in arguments.copy:
        if not file.is_file():
            raise UsageError(f"There is no file {file} to copy.")
    disk = _disk(arguments.disk) if arguments.disk else None
    require_static(arguments.program, arch)
    accelerator = choose(arch, arguments.accelerator)
    extras = {*arguments.extras} | {disk.filesystem for disk in [disk] if disk and disk.filesystem in OPTIONAL}
    request = KernelRequest(arch, variant.flavour, arguments.profile, tuple(sorted(extras)), page_size=page_size)
    kernel = build(request, report)
    programs = guest_programs(arch, report)
    bare = GuestConfig(arch, kernel.image, initramfs(programs), accelerator)
    name = f"/bin/{arguments.program.name}"
    extra = {name: arguments.program} | {f"/files/{file.name}": file for file in arguments.copy}
    config = GuestConfig(
        arch,
        kernel.image,
        initramfs(programs, extra),
        accelerator,
        memory_mib=memory_bytes >> 20,
        cpus=arguments.cpus,
        disks=(disk.prepare(bare, report),) if disk else (),
    )
    with tempfile.TemporaryDirectory(prefix="foliolab-") as scratch, Guest(config, Path(scratch, "console")) as guest:
        Switches(guest).set(variant.switches)
        if disk:
            guest.run([":mount", "/dev/vda", "/data", disk.filesystem]).checked()
        if disk and arguments.read_ahead_kb is not None:
            guest.run([":write", "/sys/block/vda/queue/read_ahead_kb", str(arguments.read_ahead_kb)]).checked()
        # A deadline of the user's is meant as it stands, not for a real machine.
        deadline = arguments.timeout and arguments.timeout / accelerator.patience
        job = guest.run([name, *arguments.arguments], deadline, on_output=_pass_on)
    if job.signal:
        report.say(job.outcome.sentence)
    return 128 + job.signal if job.signal else job.status


def _pass_on(stream: int, data: bytes) -> None:
    ours = sys.stdout.buffer if stream == 1 else sys.stderr.buffer
    ours.write(data)
    ours.flush()


def _disk(text: str) -> DataDisk:
    filesystem, colon, size = text.partition(":")
    if filesystem not in _FILESYSTEMS or not colon:
        raise UsageError(f"'{text}' is no disk; write ext4:2G, with one of {', '.join(_FILESYSTEMS)}.")
    return DataDisk(cast(Filesystem, filesystem), _size(size))


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(f"{error}.") from None


def require_static(program: Path, arch: Architecture) -> None:
    """Raise UsageError unless ``program`` is a static 64-bit executable: the guest has no shared libraries."""
    try:
        with program.open("rb") as stream:
            header = stream.read(64)
            if len(header) < 64 or not header.startswith(b"\x7fELF\x02\x01"):
                raise UsageError(f"{program} is not a 64-bit executable; 'exec' takes statically linked programs.")
            machine = struct.unpack_from("<H", header, 18)[0]
            table, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
            stream.seek(table)
            kinds = [struct.unpack_from("<I", stream.read(size))[0] for _ in range(count)]
    except struct.error as error:
        raise UsageError(f"{program} is not a whole executable.") from error
    except OSError as error:
        raise UsageError(f"{program} cannot be read: {error.strerror}.") from error
    if machine != arch.elf_machine:
        raise UsageError(f"{program} is not a program for {arch.name}.")
    if _PT_INTERP in kinds:
        raise UsageError(f"{program} needs shared libraries; link it with -static, or use './lab shell'.")

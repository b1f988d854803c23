# SPDX-License-Identifier: GPL-2.0-only
"""A program of the user's in guests, for ``exec`` and ``trace record``: options, and what is made of them."""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import cast, get_args

from foliolab.arch import Architecture, Bytes
from foliolab.campaign.program import Input, Mounted, Program, require_static
from foliolab.cli import options
from foliolab.device import Device, device_of
from foliolab.disks.userland import Directory, Packages, Root
from foliolab.errors import UsageError
from foliolab.kernel import timed_disk
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.config import OPTIONAL
from foliolab.kernel.series import check_names
from foliolab.vm.accel import COUNTING, Accelerator
from foliolab.vm.accel import choose as choose_accelerator
from foliolab.vm.data import Data, Filled, data_of
from foliolab.vm.disk import DATA_FILE, DataDisk, Filesystem
from foliolab.vm.guest import GuestConfig
from foliolab.vm.image import guest_programs, initramfs, require_memory

_FILESYSTEMS = get_args(Filesystem)


def add_program(parser: argparse.ArgumentParser) -> None:
    """All that both commands have."""
    add = parser.add_argument
    options.add_guest(parser)
    root = parser.add_mutually_exclusive_group()
    root.add_argument("--packages", metavar="NAMES", help="a root directory of these Debian packages, with commas")
    root.add_argument("--root", metavar="DIR", type=Path, help="a root directory that is a copy of DIR")
    add("--copy", metavar="FILE", type=Path, action="append", default=[], help="put FILE into /files")
    add("--data", metavar="DIR|IMAGE", type=Path, help="a copy of DIR, or the disk of an earlier --keep, on /data")
    add("--data-size", metavar="SIZE", help="of the disk on /data, which is empty without --data")
    add("--filesystem", choices=_FILESYSTEMS, help="of that disk (ext4)")
    add("--disk", metavar="FILESYSTEM:SIZE", help=f"a disk on /data that a file of SIZE fills, {DATA_FILE}: ext4:2G")
    add("--env", metavar="NAME=VALUE", action="append", default=[], help="for the program; can be repeated")
    add("--timeout", type=float, metavar="SECONDS", help="end the guest if a run takes longer (default: never)")
    options.add_accelerator(parser, "auto")
    options.add_device(parser)
    options.add_machine(parser)
    add("program", help="a static program of this machine's, or with a root directory a program there")
    add("arguments", nargs=argparse.REMAINDER, default=[], help="its arguments")


@dataclass(frozen=True)
class Asked:
    arguments: argparse.Namespace
    arch: Architecture
    page_size: Bytes
    memory_mib: int
    environment: Mapping[str, str]
    data: Data | None
    root: Root | None

    @classmethod
    def by(cls, arguments: argparse.Namespace) -> "Asked":
        """UsageError for what cannot be."""
        memory_mib, environment = options.size_of(arguments.memory) >> 20, options.pairs_of(arguments.env)
        if arguments.cpus < 1:
            raise UsageError("A guest has at least one CPU.")
        options.require_seconds("--timeout", arguments.timeout)
        asked = cls(arguments, *options.machine(arguments), memory_mib, environment, _data(arguments), _root(arguments))
        # Others take a look at KVM, and have as many CPUs as are wanted.
        if asked.device or arguments.accelerator == COUNTING:
            asked.accelerator.require_cpus(arguments.cpus)
        return asked

    @cached_property
    def accelerator(self) -> Accelerator:
        return choose_accelerator(self.arch, self.arguments.accelerator, timed=bool(self.device))

    @cached_property
    def device(self) -> Device | None:
        """Of which kind the disks are that take time."""
        return device_of(self.arguments.device) if self.arguments.device else None

    @property
    def argv(self) -> list[str]:
        """Of the program, in the guest."""
        name = self.arguments.program
        return [name if self.root else f"/program/{PurePosixPath(name).name}", *self.arguments.arguments]

    def files(self) -> dict[str, Path]:
        """To be put into the guest: guest path -> host path. UsageError for what cannot be."""
        copied: list[Path] = self.arguments.copy
        for file in copied:
            if not file.is_file():
                raise UsageError(f"There is no file {file} to copy.")
        names = [file.name for file in copied]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(f"--copy: there would be two files /files/{twice}.")
        files = {f"/files/{file.name}": file for file in copied}
        if not self.root:
            files[self.argv[0]] = Path(self.arguments.program)
            require_static(files[self.argv[0]], self.arch)
        return files

    def build(self, names: Collection[str], profile: str = "lab", extras: Sequence[str] = ()) -> dict[str, BuiltKernel]:
        """Kernels that can have its disks, by name."""
        all_extras = {*extras, *(each.filesystem for each in (self.data, self.root) if each)} & {*OPTIONAL}
        if self.device:
            all_extras.add(timed_disk.EXTRA)
            timed_disk.check_names(names)
        requests = [
            KernelRequest(self.arch, name, profile, tuple(all_extras), page_size=self.page_size)
            for name in dict.fromkeys(names)
        ]
        check_names([request.kernel for request in requests])
        return {request.kernel: build(request) for request in requests}

    def guests(
        self, kernels: Mapping[str, BuiltKernel], programs: Sequence[str], files: Mapping[str, Path]
    ) -> "Guests":
        """What to boot on each kernel, with programs of guest/ and these files. UsageError for too little memory."""
        ours = guest_programs(self.arch)
        guests = {}
        for name, kernel in kernels.items():
            archive = initramfs({each: ours[each] for each in ("init", *programs)}, files, kernel.modules)
            require_memory(self.arch, self.memory_mib, kernel.image, archive)
            bare = self._bare(kernel, archive)
            guests[name] = replace(bare, memory_mib=self.memory_mib, cpus=self.arguments.cpus, device=self.device)
        first = next(iter(kernels.values()))
        helper = initramfs({each: ours[each] for each in ("init", "copy-tree")}, modules=first.modules)
        return Guests(guests, self._bare(first, helper))

    def _bare(self, kernel: BuiltKernel, archive: Path) -> GuestConfig:
        counting = self.accelerator.counts_instructions
        words = kernel.boot_arguments(counting=counting, timed=self.device is not None)
        return GuestConfig(self.arch, kernel.image, archive, self.accelerator, boot_arguments=words)

    def program(self, guests: "Guests", scratch: Path, input_: Input | None = None) -> Program:
        """The program with its disks, made in ``scratch``."""
        mounted = []
        if self.data:
            mounted.append(Mounted("data", self.data.prepare(guests.helper, scratch), self.data.filesystem))
        if self.root:
            disk = self.root.prepare(self.arch, guests.helper, scratch)
            mounted.append(Mounted("root", disk, self.root.filesystem))
        # A deadline of the user's is meant as it stands, not for a real machine.
        deadline = self.arguments.timeout and self.arguments.timeout / self.accelerator.patience
        return Program(tuple(self.argv), self.environment, deadline, tuple(mounted), input_)


@dataclass(frozen=True)
class Guests:
    configs: Mapping[str, GuestConfig]
    """Without disks, by the name of the kernel."""
    helper: GuestConfig
    """That makes disks."""


def pass_on(stream: int, data: bytes) -> None:
    ours = sys.stdout.buffer if stream == 1 else sys.stderr.buffer
    ours.write(data)
    ours.flush()


def _data(arguments: argparse.Namespace) -> Data | None:
    size = None if arguments.data_size is None else options.size_of(arguments.data_size)
    if arguments.disk is None:
        return data_of(arguments.data, size, arguments.filesystem)
    if arguments.data or size or arguments.filesystem:
        raise UsageError("--disk makes a data disk of its own; it does not go with --data or --data-size.")
    filesystem, colon, words = arguments.disk.partition(":")
    if filesystem not in _FILESYSTEMS or not colon:
        raise UsageError(f"'{arguments.disk}' is no disk; write ext4:2G, with one of {', '.join(_FILESYSTEMS)}.")
    return Filled(DataDisk(cast(Filesystem, filesystem), options.size_of(words)))


def _root(arguments: argparse.Namespace) -> Root | None:
    if arguments.packages is not None:
        return Packages(tuple(options.names_of("--packages", arguments.packages)))
    return Directory(arguments.root) if arguments.root else None

# SPDX-License-Identifier: GPL-2.0-only
"""Guests with the lab's programs and a disk of data."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from foliolab.device import Device
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.accel import choose
from foliolab.vm.disk import DataDisk, FileTrees
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs


@contextmanager
def guest_with(
    data: DataDisk | FileTrees,
    kernel: BuiltKernel,
    console: Path,
    *options: str,
    files: Mapping[str, Path] | None = None,
    cpus: int = 1,
    boot_arguments: str = "",
    disks: int = 1,
) -> Iterator[Guest]:
    """One with ``data`` on /data, mounted with these options, and more files, by their paths there.

    All of so many disks have it; the others are not mounted.
    """
    # That of XFS alone takes two to four seconds to load.
    modules = [path for path in kernel.modules if data.filesystem == "xfs" or not path.name.endswith("-xfs.ko")]
    image = initramfs(guest_programs(kernel.arch), files, modules)
    bare = GuestConfig(kernel.arch, kernel.image, image, choose(kernel.arch), cpus=cpus)
    disk = data.prepare(bare)
    with Guest(replace(bare, disks=(disk,) * disks, boot_arguments=boot_arguments), console) as guest:
        guest.run([":mount", "/dev/vda", "/data", data.filesystem, *options]).checked()
        yield guest


@contextmanager
def guest_on(kernel: BuiltKernel, device: Device | None, console: Path, memory_mib: int = 512) -> Iterator[Guest]:
    """A guest with a file on a disk of this kind, which is not mounted; its clock counts instructions."""
    arch = kernel.arch
    words = kernel.boot_arguments(counting=True, timed=True)
    image = initramfs(guest_programs(arch), modules=kernel.modules)
    accelerator = choose(arch, timed=True)
    bare = GuestConfig(arch, kernel.image, image, accelerator, memory_mib, boot_arguments=words)
    disk = DataDisk("ext4", 256 << 20).prepare(bare)
    with Guest(replace(bare, disks=(disk,), device=device), console) as guest:
        yield guest

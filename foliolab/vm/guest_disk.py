# SPDX-License-Identifier: GPL-2.0-only
"""Disks of guests, as QEMU is told of them and as kernels call them."""

from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Literal

Bus = Literal["virtio", "nvme"]
"""By which guests reach disks. Both have a queue for each processor. NVMe takes a kernel with its driver."""


@dataclass(frozen=True)
class Disk:
    """A disk of a guest."""

    path: Path
    format: str = "qcow2"
    keep_writes: bool = False
    """Write to ``path`` itself, with zeros given back to the host, instead of to an overlay that is dropped."""


def disk_name(bus: Bus, number: int) -> str:
    """What the kernel calls a disk, of which the first has the number 0: "vda", "nvme0n1".

    It may find several on NVMe in any order.
    """
    return f"nvme{number}n1" if bus == "nvme" else f"vd{ascii_lowercase[number]}"


def options(disk: Disk, bus: Bus, number: int) -> list[str]:
    path = str(disk.path).replace(",", ",,")  # a single one would end it
    parts = [f"file={path},format={disk.format},if=none,id=disk{number}"]
    parts.append("cache=unsafe,discard=unmap,detect-zeroes=unmap" if disk.keep_writes else "snapshot=on")
    # With QEMU's default, a full host disk would stop the guest without a word.
    parts.append("werror=report,rerror=report")
    device = f"nvme,serial=disk{number}" if bus == "nvme" else "virtio-blk-pci"
    return ["-drive", ",".join(parts), "-device", f"{device},drive=disk{number}"]

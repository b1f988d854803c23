# SPDX-License-Identifier: GPL-2.0-only
"""How little memory a guest can boot in."""

import struct
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.errors import UsageError

_WORKING_BYTES = 16 << 20
"""For the kernel's tables and drivers, and for its first processes."""


def require_memory(arch: Architecture, memory_mib: int, kernel: Path, initramfs: Path) -> None:
    """Raise UsageError for a guest that can hardly boot: it would reset itself or hang, and not say why."""
    least = -(-least_bytes(arch, kernel, initramfs) >> 20)
    if memory_mib < least:
        raise UsageError(
            f"A guest with {memory_mib}M of memory is too small for its kernel and its programs; give it {least}M."
        )


def least_bytes(arch: Architecture, kernel: Path, initramfs: Path) -> int:
    """An estimate, right to some MiB; with base pages of 64 KiB a kernel takes more."""
    at, form = arch.image_bytes
    with kernel.open("rb") as stream:
        (image,) = struct.unpack_from(form, stream.read(1024), at)
    # The archive goes into a file system that takes at most half of what the kernel and the archive leave.
    return int(image) + 3 * initramfs.stat().st_size + _WORKING_BYTES

# SPDX-License-Identifier: GPL-2.0-only
"""How little memory a guest can boot in."""

import struct
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.errors import UsageError

_X86_LOADED_AT = 0x258
_ARM64_TEXT_OFFSET = 0x08
_WORKING_BYTES = 24 << 20
"""For the kernel's tables and drivers, its first processes and some room."""


def require_memory(arch: Architecture, memory_mib: int, kernel: Path, initramfs: Path) -> None:
    """Raise UsageError for a guest that cannot boot: it would reset itself or hang, and not say why."""
    least = -(-_least_bytes(arch, kernel, initramfs) >> 20)
    if memory_mib < least:
        raise UsageError(
            f"A guest with {memory_mib}M of memory is too small for its kernel and its programs; give it {least}M."
        )


def _least_bytes(arch: Architecture, kernel: Path, initramfs: Path) -> int:
    with kernel.open("rb") as stream:
        header = stream.read(1024)
    if arch.source == "x86":
        # Where it wants to be, and how much it takes there until it has unpacked itself.
        loaded, image = struct.unpack_from("<QI", header, _X86_LOADED_AT)
    else:
        loaded, image = struct.unpack_from("<QQ", header, _ARM64_TEXT_OFFSET)
    # The archive is in memory twice while it is unpacked.
    return int(loaded) + int(image) + 2 * initramfs.stat().st_size + _WORKING_BYTES

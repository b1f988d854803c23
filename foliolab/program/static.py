# SPDX-License-Identifier: GPL-2.0-only
"""Which programs run in a guest without further files."""

import struct
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.errors import UsageError

_PT_INTERP = 3


def require_static(program: Path, arch: Architecture) -> None:
    """Raise UsageError unless ``program`` is a static 64-bit executable: the guest has no shared libraries."""
    try:
        with program.open("rb") as stream:
            header = stream.read(64)
            if len(header) < 64 or not header.startswith(b"\x7fELF\x02\x01"):
                raise UsageError(f"{program} is not a 64-bit executable; scripts need --packages or --root.")
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
        raise UsageError(
            f"{program} needs shared libraries; link it with -static, or give it Debian packages with --packages, "
            "or a root directory with --root."
        )

# SPDX-License-Identifier: GPL-2.0-only
"""Our kernel code, by a hash that takes neither a source nor a compiler."""

from pathlib import Path

from foliolab.errors import LabError
from foliolab.files import digest_files
from foliolab.kernel.name import OURS, parse_name
from foliolab.kernel.series import ported
from foliolab.paths import KERNEL

_NOT_COMPILED = ("Documentation", "tools")


def code_hash(version: str, kernel: Path = KERNEL) -> str:
    """Over what our series for Linux ``version`` puts into a kernel: new files and hooks, but no documentation."""
    files = [path for path in (kernel / "files").rglob("*") if path.is_file()]
    compiled = [path for path in files if path.relative_to(kernel / "files").parts[0] not in _NOT_COMPILED]
    return digest_files([*compiled, *ported(version, kernel).iterdir()], kernel)


def code_of(name: str, version: str) -> str:
    """The hash of what a kernel of this name and version has of our code, as it stands now.

    Empty if it has none, or has it from elsewhere.
    """
    try:
        series = parse_name(name).series
    except LabError:  # a tree that is not here
        return ""
    return code_hash(version) if OURS in series else ""

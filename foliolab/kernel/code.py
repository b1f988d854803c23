# SPDX-License-Identifier: GPL-2.0-only
"""Our kernel code, by a hash that takes neither a source nor a compiler."""

import re
from pathlib import Path

from foliolab.errors import LabError
from foliolab.files import digest, digest_files
from foliolab.kernel.name import OURS, parse_name
from foliolab.kernel.series import diffs, ported
from foliolab.paths import KERNEL

_PLACE = re.compile(r"^@@ .*", re.MULTILINE)
"""Where a hunk lies moves with those before it."""

_NOT_COMPILED = ("Documentation", "MAINTAINERS", "tools")


def code_hash(version: str, kernel: Path = KERNEL) -> str:
    """Over what our series for Linux ``version`` puts into a kernel: new files and hooks.

    Neither documentation nor changelogs.
    """
    files = kernel / "files"
    compiled = [path for path in files.rglob("*") if path.is_file() and _compiled(path.relative_to(files))]
    hooks = [
        part
        for patch in sorted(ported(version, kernel).glob("*.patch"))
        for path, diff in sorted(diffs(patch).items())
        if _compiled(Path(path))
        for part in (path, _PLACE.sub("@@", diff))
    ]
    return digest([digest_files(compiled, kernel), *hooks])


def _compiled(path: Path) -> bool:
    return path.parts[0] not in _NOT_COMPILED


def code_of(name: str, version: str) -> str:
    """The hash of what a kernel of this name and version has of our code, as it stands now.

    Empty if it has none, or has it from elsewhere.
    """
    try:
        series = parse_name(name).series
    except LabError:  # a tree that is not here
        return ""
    return code_hash(version) if OURS in series else ""

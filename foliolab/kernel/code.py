# SPDX-License-Identifier: GPL-2.0-only
"""Our code in a kernel, by a hash that takes neither a source nor a compiler."""

import re
from collections.abc import Collection
from pathlib import Path

from foliolab.errors import LabError
from foliolab.files import KERNEL, digest
from foliolab.kernel import module
from foliolab.kernel.name import OURS, parse_name
from foliolab.kernel.series import diffs, read_series

_PLACE = re.compile(r"^@@ .*", re.MULTILINE)
"""Where a hunk lies moves with those before it. That it has moved to equal text elsewhere is not noticed."""

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"[ \t]+")

_NOT_BUILT = ("Documentation/", "MAINTAINERS", "tools/testing/")
"""Changes there make no other kernel."""

_KUNIT_TESTS = "_kunit.c"
"""So end the names of files that only kernels with KUnit are built of. None is measured."""


def is_built(file: str, *, kunit: bool = False) -> bool:
    """Whether a kernel is made of a file; with ``kunit``, one that has KUnit."""
    return not file.startswith(_NOT_BUILT) and (kunit or not file.endswith(_KUNIT_TESTS))


def code_hash(version: str, kernel: Path = KERNEL, without: Collection[str] = ()) -> str:
    """Over what our series for Linux ``version`` puts into a kernel: new files and hooks.

    It leaves out comments, documentation, changelogs, tests, and all that patches of the topics ``without`` bring.
    """
    parts: list[str | bytes] = []
    for feature in read_series(version, kernel):
        if feature.topic in without:
            continue
        for file in feature.files:
            if is_built(file):
                parts += [file, _bare((kernel / "files" / file).read_text())]
        for file, diff in diffs(feature.patch).items():
            if is_built(file, kunit=True):
                parts += [file, *map(_bare, _PLACE.split(diff))]
    return digest(parts)


def _bare(code: str) -> str:
    """C without comments and lines of nothing else, and with single spaces; a hunk is taken likewise."""
    lines = (_SPACE.sub(" ", line).rstrip() for line in _COMMENT.sub("", code).splitlines())
    return "\n".join(line for line in lines if line not in ("", "+", "-"))


def code_of(name: str, version: str, without: Collection[str] = ()) -> str:
    """The hash of what a kernel of this name and version has of our code, as it stands now: the series, or the module.

    Empty if it has none, or has it from elsewhere. Of the series, the topics ``without`` are left out.
    """
    try:
        kernel = parse_name(name)
    except LabError:  # a tree that is not here
        return ""
    if kernel.module:
        return module.code_hash()
    return code_hash(version, without=without) if OURS in kernel.series else ""

# SPDX-License-Identifier: GPL-2.0-only
"""Outcomes that are kept in the cache, because to have them again takes seconds."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.files import cache_directory, digest, digest_files, write_atomic
from foliolab.kernel import module
from foliolab.kernel.debian_headers import Headers

_COMMON = sorted(Path(process.__file__).parent.glob("*.py"))
"""How all of the lab runs programs, and which."""


def kept(decides: Iterable[bytes | str], found: Callable[[], list[str]]) -> list[str]:
    """What is found, or was by what decided it all the same. Raising keeps nothing."""
    file = cache_directory() / "outcomes" / digest([digest_files(_COMMON), *decides])
    if not file.exists():
        write_atomic(file, json.dumps(found()))
    lines: list[str] = json.loads(file.read_text())
    return lines


def of_module(test: str, found: Headers, what: str) -> list[bytes | str]:
    """All that decides what a test file makes of the module's sources with these headers."""
    how = digest_files([Path(test), *Path(module.__file__).parent.glob("*.py")])
    return [what, module.code_hash(), found.hash, process.compiler(NATIVE)[1], how]

# SPDX-License-Identifier: GPL-2.0-only
"""Outcomes that are kept in the cache, because to have them again takes seconds."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from foliolab import process
from foliolab.files import cache_directory, digest, write_atomic


def kept(decides: Iterable[bytes | str], found: Callable[[], list[str]]) -> list[str]:
    """What is found, or was by what decided it all the same. Raising keeps nothing."""
    file = cache_directory() / "outcomes" / digest([Path(process.__file__).read_bytes(), *decides])
    if not file.exists():
        write_atomic(file, json.dumps(found()))
    lines: list[str] = json.loads(file.read_text())
    return lines

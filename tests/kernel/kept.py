# SPDX-License-Identifier: GPL-2.0-only
"""Outcomes that are kept in the cache, because to have them again takes seconds."""

import json
from collections.abc import Callable, Iterable

from foliolab.files import cache_directory, digest, write_atomic


def kept(decides: Iterable[bytes | str], found: Callable[[], list[str]]) -> list[str]:
    """What is found, or was by what decided it all the same."""
    file = cache_directory() / "outcomes" / digest(decides)
    if not file.exists():
        write_atomic(file, json.dumps(found()))
    lines: list[str] = json.loads(file.read_text())
    return lines

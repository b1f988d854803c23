# SPDX-License-Identifier: GPL-2.0-only
"""The windows that open files and devices really have."""

from pathlib import Path

from foliohost import residency
from foliohost.processes import PAGE_BYTES
from tests.host.conftest import Toucher

PAGE_KB = PAGE_BYTES >> 10


def read_kb(program: Toucher, path: Path) -> int:
    """What one fault of a program reads of a cold file."""
    program.tell("page 1000")
    found = residency.cached(path)
    assert found is not None
    return found.bit_count() * PAGE_KB

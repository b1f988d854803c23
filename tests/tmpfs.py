# SPDX-License-Identifier: GPL-2.0-only
"""File systems in memory that are this machine's own, and small."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def tmpfs(place: Path, options: str) -> Iterator[Path]:
    """One with these options, mounted on a directory that is made for it; where it cannot be, the test is skipped."""
    place.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
    mounted = subprocess.run(argv, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no tmpfs with {options} can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)

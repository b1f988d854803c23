# SPDX-License-Identifier: GPL-2.0-only
"""Whether this machine's kernel can be traced, and what of ours it traces."""

import os
import subprocess
from pathlib import Path

import pytest

from foliohost.errors import FolioError
from foliohost.tracefs import tracefs


def obstacle() -> str:
    """Why nothing can be recorded here. tracefs is mounted as most machines have it from their start, and stays so."""
    if not os.geteuid() and not Path("/sys/kernel/tracing/instances").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], capture_output=True, check=False)
    try:
        tracefs()
    except FolioError as error:
        return str(error)
    return ""


here = pytest.mark.skipif(bool(obstacle()), reason=obstacle())


def instances(process: int) -> list[Path]:
    """Those of one of us; other tests have theirs at the same time."""
    return list((tracefs() / "instances").glob(f"foliolab-live-{process}-*"))

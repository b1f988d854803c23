# SPDX-License-Identifier: GPL-2.0-only
"""The Pythons of this machine, with each of which the tools have to run."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

MINORS = range(9, 16)
OF_SERVERS = (9, 10, 12)
"""Those of RHEL 9 and Amazon Linux 2023, of Ubuntu 22.04, and of Ubuntu 24.04."""


@cache
def python(minor: int) -> str | None:
    """Python 3 of that minor version, as it is in the path or as pyenv keeps it; None without one that runs."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    named = [shutil.which(f"python3.{minor}"), *map(str, versions.glob(f"3.{minor}.*/bin/python3"))]
    for found in filter(None, named):
        if not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
            return found
    return None


def needed_python(minor: int) -> str:
    """The same; without one, the test is skipped."""
    found = python(minor)
    if not found:
        pytest.skip(f"there is no Python 3.{minor} here")
    return found


def chosen_for_long_tests(minor: int) -> bool:
    """Whether it is one of servers, or the lowest one here; with FOLIOLAB_PYTHONS=all, each is."""
    if minor in OF_SERVERS or os.environ.get("FOLIOLAB_PYTHONS") == "all":
        return True
    return not any(map(python, range(MINORS.start, minor)))

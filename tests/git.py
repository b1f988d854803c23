# SPDX-License-Identifier: GPL-2.0-only
"""This machine's own git."""

import subprocess
from pathlib import Path


def git(place: Path, *arguments: str) -> str:
    """What a command prints in a directory, whoever has its commits made. It has to succeed."""
    author = ("-c", "user.name=A", "-c", "user.email=a@example.invalid")
    argv = ["git", "-C", str(place), *author, *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

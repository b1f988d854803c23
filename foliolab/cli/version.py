# SPDX-License-Identifier: GPL-2.0-only
"""What this is a version of: the lab's number, its commit, and what the series puts into a kernel."""

import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

from foliolab.errors import LabError
from foliolab.files import INSTALLED, REPOSITORY
from foliolab.kernel.code import code_hash
from foliolab.kernel.series import bases
from foliolab.process import git


def described(repository: Path = REPOSITORY) -> str:
    """Lines with the version, the commit, and for each base the hash that samples have of our code in kernels."""
    codes = [f"kernel {base} {code_hash(base)}" for base in bases()]
    return "\n".join([f"foliolab {_number(repository)}", f"commit {_commit(repository)}", *codes])


def _number(repository: Path) -> str:
    if INSTALLED:
        return metadata.version("foliolab")
    project: dict[str, Any] = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def _commit(repository: Path) -> str:
    if not (repository / ".git").exists():  # an archive, which may lie in somebody else's repository
        return "unknown"
    try:
        commit = git(LabError, "rev-parse", "--short=12", "HEAD", place=repository, alone=False).decode().strip()
        command = ("--no-optional-locks", "status", "--porcelain")
        changed = git(LabError, *command, place=repository, alone=False)
    except LabError:  # not even a commit, or no git
        return "unknown"
    return f"{commit} with changes" if changed else commit

# SPDX-License-Identifier: GPL-2.0-only
"""What the lab tells of itself: its version, a manual page, and what a shell completes."""

import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import foliolab
from foliohost.cli import described as cli
from foliolab import errors
from foliolab.cli.main import COMMANDS, command_line
from foliolab.errors import LabError
from foliolab.files import INSTALLED, REPOSITORY
from foliolab.kernel.code import code_hash
from foliolab.kernel.series import bases
from foliolab.process import git


def manual() -> str:
    """For man: './lab --manual | man -l -'."""
    return cli.manual(_program())


def completion() -> str:
    """For bash: 'source <(./lab --completion)'."""
    return cli.completion(_program())


def _program() -> cli.CommandLine:
    return cli.CommandLine(
        "lab",
        "large-folio memory mapping for Linux, measured",
        _number(REPOSITORY),
        str(foliolab.__doc__),
        {name: cli.chosen(command_line([name]), name) for name in COMMANDS},
        cli.statuses([*vars(errors).values()], "All is well."),
        {
            "FOLIOLAB_CACHE": "The directory of kernels, disks and sources; by default ~/.cache/foliolab.",
            "FOLIOLAB_RESULTS": "The directory of samples; by default results/ in the checkout.",
        },
    )


def version(repository: Path = REPOSITORY) -> str:
    """Lines with the version, the commit, and for each base the hash that samples have of our code in kernels."""
    codes = [f"kernel {base} {code_hash(base)}" for base in bases()]
    return "\n".join([f"foliolab {_number(repository)}", f"commit {commit(repository)}", *codes, ""])


def _number(repository: Path) -> str:
    if INSTALLED:
        return metadata.version("foliolab")
    project: dict[str, Any] = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def commit(repository: Path) -> str:
    """The commit that a checkout stands on, and whether it has changes; "unknown" where git does not tell."""
    if not (repository / ".git").exists():  # an archive, which may lie in somebody else's repository
        return "unknown"
    try:
        found = git(LabError, "rev-parse", "--short=12", "HEAD", place=repository, alone=False).decode().strip()
        command = ("--no-optional-locks", "status", "--porcelain")
        changed = git(LabError, *command, place=repository, alone=False)
    except LabError:  # not even a commit, or no git
        return "unknown"
    return f"{found} with changes" if changed else found

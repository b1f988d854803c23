# SPDX-License-Identifier: GPL-2.0-only
"""What the lab takes of the system, as packages.txt lists it, which the bootstrap reads as well."""

import platform
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from foliolab.errors import MissingTool
from foliolab.paths import REPOSITORY


@dataclass(frozen=True)
class Need:
    name: str
    """A program, a C header, or the path of a file."""
    package: str
    """Debian's, which brings it."""
    purpose: str
    machine: str = ""
    """As ``uname -m`` prints it, if it is for that only."""

    @property
    def mine(self) -> bool:
        """Whether it is for this machine."""
        return self.machine in ("", platform.machine())


@cache
def _listed() -> tuple[Need, ...]:
    lines = (REPOSITORY / "packages.txt").read_text().splitlines()
    return tuple(Need(*line.split()) for line in lines if line and line[0] != "#")


def needs(purpose: str) -> list[Need]:
    """What this machine takes for a purpose."""
    return [need for need in _listed() if need.purpose == purpose and need.mine]


def package_of(name: str) -> str:
    """Debian's package that brings something to this machine; MissingTool if packages.txt does not say."""
    named = {need.mine: need.package for need in _listed() if need.name == name}
    if not named:
        raise MissingTool(f"packages.txt does not say which package brings {name}; add a line for it there.")
    return named[True] if True in named else named[False]


def find(name: str) -> str | None:
    """The path of a program, a C header or a file; None if it is not installed."""
    if name.endswith(".h") or name.startswith("/"):
        place = Path("/usr/include", name)  # which is the name itself if that is a path
    elif found := shutil.which(name):
        return found
    else:
        place = Path("/usr/sbin", name)  # mke2fs and friends, for users without sbin in their PATH
    return str(place) if place.exists() else None

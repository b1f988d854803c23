# SPDX-License-Identifier: GPL-2.0-only
"""The adaptive window as a module for kernels that Debian has built."""

import re
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.files import KERNEL, MODULE, digest_files
from foliolab.kernel.debian_headers import built_module

NAME = "mmap_readahead_window"
_POLICY = tuple(KERNEL / f"files/mm/mmap_readahead_window.{kind}" for kind in "ch")
"""What the kernel patches and the module have in common."""

_SOURCES, _RECIPES = (".c", ".h"), ("Kbuild", "Makefile", "dkms.conf")
"""Of the module's directory, without what make leaves there."""
_CALLERS = ("Makefile", "dkms.conf")
"""Which only ask the kernel's own make for it."""


def sources(directory: Path = MODULE) -> dict[str, Path]:
    """All that it is made of, with the policy: name in a directory that is complete by itself -> file."""
    there = (path for path in directory.iterdir() if path.suffix in _SOURCES or path.name in _RECIPES)
    own = {path.name: path for path in there if not path.name.endswith(".mod.c")}
    return own | {f"mm/{path.name}": path for path in _POLICY}


def code_hash(directory: Path = MODULE) -> str:
    """Over what is compiled, and how, as foliolab.kernel.code has it of a series."""
    return digest_files(path for path in sources(directory).values() if path.name not in _CALLERS)


def built(release: str, arch: Architecture) -> Path:
    """The module for the kernel of which ``uname -r`` prints ``release``; guests load it after all others."""
    return built_module(f"99-{NAME}.ko", sources(), code_hash(), release, arch)


def name_and_version() -> tuple[str, str]:
    """What dkms.conf calls the module."""
    text = (MODULE / "dkms.conf").read_text()
    name, version = (re.findall(rf'^PACKAGE_{word}="(.+)"$', text, re.MULTILINE)[0] for word in ("NAME", "VERSION"))
    return name, version

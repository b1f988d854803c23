# SPDX-License-Identifier: GPL-2.0-only
"""Kernels in the cache."""

import json
from dataclasses import dataclass
from pathlib import Path

from foliolab.arch import Architecture, Bytes, architecture
from foliolab.files import cache_directory


@dataclass(frozen=True)
class BuiltKernel:
    hash: str
    """Over everything that went in: source, changes on top, options, compiler."""
    image: Path
    name: str
    """By which it was asked for."""
    profile: str
    arch: Architecture
    release: str
    """As ``uname -r`` prints it."""
    page_size: Bytes
    ours: bool
    """Whether it has our code, and so our switches."""
    compiler: str = ""
    """As it names itself; empty for a kernel that was not built here."""
    packaged: str = ""
    """Its version, if it is not built but came as a package, whose release may say little."""
    module: Path | None = None
    """The adaptive window, if guests are to load that as well."""
    disk_module: Path | None = None
    """The disk that takes time, likewise."""

    @property
    def version(self) -> str:
        """As its source says it: "6.12.117"."""
        return self.packaged or self.release.partition("-foliolab")[0]

    @property
    def modules(self) -> tuple[Path, ...]:
        """What a guest has to load, in this order; all is built into the lab's own kernels."""
        own = sorted((self.image.parent / "modules").glob("*.ko"))
        return (*own, *(module for module in (self.disk_module, self.module) if module))

    def boot_arguments(self, *, counting: bool, timed: bool) -> str:
        """What it has to be told where instructions are counted, and where disks take time besides."""
        if not counting:
            return ""
        if not self.packaged:
            return self.arch.counting_boot_arguments
        # A distribution's kernel clears each page that it gives out, which a processor does in less than it counts.
        return f"{self.arch.counting_boot_arguments} init_on_alloc=0".strip() if timed else ""

    @property
    def config(self) -> Path:
        return self.image.parent / "config"


def kernels_directory() -> Path:
    """Where each has a directory, named by its hash."""
    return cache_directory() / "kernels"


def load_kernel(place: Path) -> BuiltKernel | None:
    """The kernel in a directory; None if there is none, not all of one, or one that an earlier lab has described."""
    try:
        facts = json.loads((place / "kernel.json").read_text())
        arch = architecture(facts["arch"])
        return BuiltKernel(
            hash=place.name,
            image=place / arch.image,
            name=facts["name"],
            profile=facts["profile"],
            arch=arch,
            release=facts["release"],
            page_size=facts["page_size"],
            ours=facts["ours"],
            compiler=facts.get("compiler", ""),
            packaged=facts["version"] if facts.get("packaged") else "",
        )
    except (OSError, ValueError, KeyError):
        return None

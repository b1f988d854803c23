# SPDX-License-Identifier: GPL-2.0-only
"""Root directories for programs of the user's that need libraries, on a disk of their own."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from foliolab.arch import Architecture
from foliolab.progress import Reporter
from foliolab.userland.disk import Selection, Userland
from foliolab.vm.disk import Filesystem
from foliolab.vm.guest import Disk, GuestConfig
from foliolab.vm.tree import make_ext4, require_directory

_ALWAYS = ("bash", "coreutils", "dash", "findutils", "grep", "sed")
"""Of what no package names among its dependencies, because no Debian is without: a shell and its commands."""


@dataclass(frozen=True)
class Packages:
    """Debian packages with all that they depend on, on XFS, where text can be in large folios.

    The disk stays in the cache. Scripts of the packages do not run.
    """

    names: tuple[str, ...]

    filesystem: ClassVar[Filesystem] = "xfs"

    def prepare(self, arch: Architecture, guest: GuestConfig, scratch: Path, report: Reporter) -> Disk:
        return Userland.selected(arch, Selection((*self.names, *_ALWAYS), (), ()), report).prepare(guest, report)


@dataclass(frozen=True)
class Directory:
    """A tree of the host's, such as one of debootstrap or the export of a container, copied onto ext4."""

    place: Path

    filesystem: ClassVar[Filesystem] = "ext4"

    def __post_init__(self) -> None:
        require_directory(self.place, "--root")

    def prepare(self, arch: Architecture, guest: GuestConfig, scratch: Path, report: Reporter) -> Disk:
        path = scratch / "root.img"
        with report.task(f"making a disk: ext4, a copy of {self.place}"):
            make_ext4(path, None, self.place)
        return Disk(path, "raw")


Root = Packages | Directory
"""Every guest sees it as it was made: what is written there is dropped."""

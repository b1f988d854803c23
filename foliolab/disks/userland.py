# SPDX-License-Identifier: GPL-2.0-only
"""Disks with root directories: real programs and all that they need, from Debian packages, and trees of the user's."""

import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from foliolab import process
from foliolab.apt import Package, fetch
from foliolab.arch import Architecture
from foliolab.errors import LabError
from foliolab.files import GUEST, cache_directory, digest, digest_files, write_atomic
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.name import BASE_VERSION
from foliolab.kernel.source import Source
from foliolab.progress import working
from foliolab.vm.disk import Filesystem, publish, written_by_guest
from foliolab.vm.guest import Disk, GuestConfig
from foliolab.vm.tree import make_ext4, require_directory


@dataclass(frozen=True)
class Selection:
    packages: tuple[str, ...]
    """With all that they depend on."""
    work: tuple[Path, ...]
    """Directories of what the programs are given to do; their files lie in /src of the disk."""
    settle: tuple[tuple[str, ...], ...]
    """Commands of a guest that complete the disk, which is mounted on /data."""
    suite: str = ""
    """The release of Debian that the packages are of; "" is that of this machine."""


_TEXT_WORK = GUEST / "text/real-text"
_COMPILE = ("real-text", "--root", "/data", "--program", "python")
"""Have Python write the compiled form of what it loads, as its packages' scripts would have."""
_PACKAGES = ("dash", "gcc", "libc6-dev", "make", "python3")

SELECTIONS: Mapping[str, Selection] = {
    "userland": Selection(_PACKAGES, (_TEXT_WORK,), (_COMPILE,)),
    "programs": Selection(
        (*_PACKAGES, "fio", "python3-lmdb"),
        (_TEXT_WORK, GUEST / "reclaim/program-workload"),
        (_COMPILE, ("program-workload", "--root", "/data", "--workload", "prepare")),
    ),
}
"""By the name that experiments call them by."""

_LAYOUT = "1"
"""To be raised when the same packages and files are to make another disk, also when ``settle`` changes."""
_UUID = "f01101ab-0000-4000-8000-000000000002"
_PROJECT = ("tools/include", "tools/arch/{arch}/include", "tools/lib")
"""The part of the kernel's source that the compiler is run over."""
_MERGED = ("bin", "lib", "lib64", "sbin")
"""Directories that are links into /usr."""
_SETTLE_SECONDS = 600


@dataclass(frozen=True)
class Userland:
    """An XFS file system, which has large folios, with the root directory of a small Debian.

    Every file is in one piece, and every guest sees it as it was made.
    """

    arch: Architecture
    packages: tuple[Package, ...]
    source: Source
    """Of the kernel, for the project that is compiled."""
    selection: Selection = SELECTIONS["userland"]

    @classmethod
    def selected(cls, arch: Architecture, selection: Selection) -> "Userland":
        """What it is made of; fetched first if the cache does not have it."""
        packages = fetch(arch, selection.packages, selection.suite)
        return cls(arch, packages, from_debian(BASE_VERSION), selection)

    @property
    def hash(self) -> str:
        """Over everything that the disk holds: what programs do with memory depends on it."""
        work = [digest_files(_files(directory), directory) for directory in self.selection.work]
        files = [part for package in self.packages for part in (package.file.name, package.hash)]
        return digest([_LAYOUT, self.arch.name, self.source.identity, *work, *files])

    @property
    def path(self) -> Path:
        return cache_directory().resolve() / "userlands" / f"{self.arch.name}-{self.hash}.img"

    def prepare(self, guest: GuestConfig) -> Disk:
        """The disk to give to a guest, made first if the cache does not have it.

        ``guest`` is the configuration of a guest that can mount it; its own disks are ignored.
        """
        text = f"making a disk: {self.arch.name} programs from {len(self.packages)} Debian packages"
        publish(self.path, text, lambda place: self._make(place, guest))
        return Disk(self.path, "raw")

    def _make(self, place: Path, guest: GuestConfig) -> Path:
        tree, disk = place / "tree", place / "disk"
        self._fill(tree)
        _make_filesystem(tree, disk)
        jobs = [(":mount", "/dev/vda", "/data", "xfs"), *self.selection.settle]
        config = replace(guest, disks=(Disk(disk, "raw", keep_writes=True),))
        written_by_guest(config, jobs, place, _SETTLE_SECONDS)
        return disk

    def _fill(self, tree: Path) -> None:
        """Unpack the packages, without their scripts, and lay the work beside them."""
        for name in (*(f"usr/{name}" for name in _MERGED), "dev", "proc", "tmp"):
            (tree / name).mkdir(parents=True)
        for name in _MERGED:
            (tree / name).symlink_to(f"usr/{name}")
        unpack = [process.tool("tar"), "--extract", "--keep-directory-symlink", "--no-same-owner"]
        for package in self.packages:
            archive = process.run([process.tool("dpkg-deb"), "--fsys-tarfile", str(package.file)], LabError)
            process.run([*unpack, "--directory", str(tree)], LabError, stdin=archive)
        (tree / "src").mkdir()
        for file in (file for directory in self.selection.work for file in _files(directory)):
            shutil.copy2(file, tree / "src")
        for name in (template.format(arch=self.arch.source) for template in _PROJECT):
            shutil.copytree(self.source.tree / name, tree / "src/linux" / name)


def _files(work: Path) -> list[Path]:
    """The files of a directory of work; whoever runs or checks them here leaves directories beside them."""
    return [path for path in work.iterdir() if path.is_file()]


def _make_filesystem(tree: Path, path: Path) -> None:
    """An XFS file system with all of ``tree``, owned by root."""
    listing = path.with_suffix(".listing")
    # mkfs.xfs wants to find much more room in each of four parts than files take there in the end. Nothing
    # is stored for what is left empty.
    content = sum(entry.lstat().st_size for entry in tree.rglob("*"))
    size = (1 << 30) + 4 * content
    try:
        with path.open("wb") as stream:
            stream.truncate(-(-size >> 20) << 20)
        # The first line names a boot block, and the second counts blocks and inodes: nobody looks at them.
        write_atomic(listing, "\n".join(["/", "0 0", "d--755 0 0", *_listing(tree, Path()), "$", ""]))
        argv = [process.tool("mkfs.xfs"), "-q", "-f", "-m", f"uuid={_UUID}", "-p", str(listing), str(path)]
        # Names in the listing end at a blank, and the cache's own name may have some: those are relative.
        process.run(argv, LabError, cwd=tree)
    finally:
        listing.unlink(missing_ok=True)


def _listing(tree: Path, below: Path) -> Iterator[str]:
    """The members of a directory as mkfs.xfs wants them; a directory's own follow it and end with a dollar sign."""
    for entry in sorted((tree / below).iterdir()):
        name = below / entry.name
        if len(f"x{name}x".split()) > 1:
            raise LabError(f"A file of the packages cannot be put onto a disk: '{name}' has a blank in its name.")
        mode = entry.lstat().st_mode
        bits = ("u" if mode & stat.S_ISUID else "-") + ("g" if mode & stat.S_ISGID else "-") + f"{mode & 0o777:03o}"
        if entry.is_symlink():
            yield f"{entry.name} l{bits} 0 0 {entry.readlink()}"
        elif entry.is_dir():
            yield f"{entry.name} d{bits} 0 0"
            yield from _listing(tree, name)
            yield "$"
        else:
            yield f"{entry.name} -{bits} 0 0 {name}"


_ALWAYS = ("bash", "coreutils", "dash", "findutils", "grep", "sed")
"""Of what no package names among its dependencies, because no Debian is without: a shell and its commands."""


@dataclass(frozen=True)
class Packages:
    """Debian packages with all that they depend on, on XFS, where text can be in large folios.

    The disk stays in the cache. Scripts of the packages do not run.
    """

    names: tuple[str, ...]

    filesystem: ClassVar[Filesystem] = "xfs"

    def prepare(self, arch: Architecture, guest: GuestConfig, scratch: Path) -> Disk:
        return Userland.selected(arch, Selection((*self.names, *_ALWAYS), (), ())).prepare(guest)


@dataclass(frozen=True)
class Directory:
    """A tree of the host's, such as one of debootstrap or the export of a container, copied onto ext4."""

    place: Path

    filesystem: ClassVar[Filesystem] = "ext4"

    def __post_init__(self) -> None:
        require_directory(self.place, "--root")

    def prepare(self, arch: Architecture, guest: GuestConfig, scratch: Path) -> Disk:
        path = scratch / "root.img"
        with working(f"making a disk: ext4, a copy of {self.place}"):
            make_ext4(path, None, self.place)
        return Disk(path, "raw")


Root = Packages | Directory
"""Every guest sees it as it was made: what is written there is dropped."""

# SPDX-License-Identifier: GPL-2.0-only
"""The data disk of a program of the user's: what is on it, where it is written, how it is kept."""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from foliolab import process
from foliolab.errors import LabError, UsageError
from foliolab.files import full_disk_named
from foliolab.progress import working
from foliolab.vm.disk import DataDisk, Filesystem, written_by_guest
from foliolab.vm.guest import Disk, GuestConfig
from foliolab.vm.tree import make_ext4, require_directory

_QCOW2 = b"QFI\xfb"
_LEAST_XFS = 320 << 20
_COPY_SECONDS = 3600
_MAGICS: dict[Filesystem, tuple[int, bytes]] = {"ext4": (1080, b"\x53\xef"), "xfs": (0, b"XFSB")}


@dataclass(frozen=True)
class Fresh:
    """An empty file system, or one with what is in a directory of the host's."""

    filesystem: Filesystem
    size_bytes: int | None
    """Of the disk; None: what the directory needs, and room."""
    directory: Path | None = None

    def __post_init__(self) -> None:
        if self.directory:
            require_directory(self.directory, "--data")
        if self.filesystem == "xfs" and self.size_bytes and self.size_bytes < _LEAST_XFS:
            raise UsageError(f"XFS needs a disk of {_LEAST_XFS >> 20}M at least.")

    def prepare(self, guest: GuestConfig, scratch: Path) -> Disk:
        """A disk that is written to. ``guest`` is the configuration of a guest that can mount it."""
        path = scratch / "data.img"
        text = f"making a disk: {self.filesystem}, {f'a copy of {self.directory}' if self.directory else 'empty'}"
        with working(text), full_disk_named(scratch):
            if self.filesystem == "ext4":
                make_ext4(path, self.size_bytes, self.directory)
            else:
                self._make_xfs(path, guest, scratch)
        return Disk(path, "raw", keep_writes=True)

    def _make_xfs(self, path: Path, guest: GuestConfig, scratch: Path) -> None:
        # mkfs.xfs itself takes no names with blanks, and no files over 2 GiB: a guest copies.
        source = scratch / "source.img"
        size = self.size_bytes or 0
        if self.directory:
            make_ext4(source, None, self.directory)
            size = size or source.stat().st_size
        with path.open("wb") as stream:
            stream.truncate(size)
        process.run([process.tool("mkfs.xfs"), "-q", "-f", str(path)], LabError)
        if not self.directory:
            return
        disks = (Disk(path, "raw", keep_writes=True), Disk(source, "raw"))
        mounts = [":mount", "/dev/vda", "/data", "xfs"], [":mount", "/dev/vdb", "/source", "ext4", "ro"]
        jobs = [*mounts, ["copy-tree", "/source", "/data"]]
        written_by_guest(replace(guest, disks=disks), jobs, scratch, _COPY_SECONDS)
        source.unlink()


@dataclass(frozen=True)
class Image:
    """A disk that is there already; the image itself stays as it is."""

    path: Path
    format: str
    filesystem: Filesystem

    @classmethod
    def of(cls, path: Path) -> "Image":
        """UsageError for a file that holds none of our file systems."""
        with path.open("rb") as stream:
            head = stream.read(4096)
        kind = "qcow2" if head.startswith(_QCOW2) else "raw"
        if kind == "qcow2":
            with tempfile.TemporaryDirectory(prefix="foliolab-") as place:
                argv = [process.tool("qemu-img"), "dd", "-f", kind, "-O", "raw", "bs=4096", "count=1"]
                try:
                    process.run([*argv, f"if={path}", f"of={place}/head"], LabError)
                except LabError as error:
                    raise UsageError(f"{path} is no whole qcow2 image.") from error
                head = Path(place, "head").read_bytes()
        for filesystem, (at, magic) in _MAGICS.items():
            if head[at : at + len(magic)] == magic:
                return cls(path.resolve(), kind, filesystem)
        raise UsageError(f"{path} holds no file system; a disk has {' or '.join(get_args(Filesystem))}, unpartitioned.")

    def prepare(self, guest: GuestConfig, scratch: Path) -> Disk:
        return _overlay(Disk(self.path, self.format), scratch)


@dataclass(frozen=True)
class Filled:
    """A disk with one file that fills it."""

    disk: DataDisk

    @property
    def filesystem(self) -> Filesystem:
        return self.disk.filesystem

    def prepare(self, guest: GuestConfig, scratch: Path) -> Disk:
        return _overlay(self.disk.prepare(guest), scratch)


Data = Fresh | Image | Filled
"""What is on a data disk, and how it gets there."""


def data_of(source: Path | None, size_bytes: int | None, filesystem: Filesystem | None) -> Data | None:
    """What ``--data``, ``--data-size`` and ``--filesystem`` ask for; UsageError if they do not go together."""
    if source and not source.exists():
        raise UsageError(f"--data: {source} does not exist.")
    if source and source.is_file():
        if size_bytes or filesystem:
            raise UsageError(f"--data: {source} has its size and its file system already.")
        return Image.of(source)
    if source or size_bytes:
        return Fresh(filesystem or "ext4", size_bytes, source)
    if filesystem:
        raise UsageError("--filesystem is of a disk; give it one with --data or --data-size.")
    return None


def _overlay(disk: Disk, scratch: Path) -> Disk:
    path = scratch / "data.qcow2"
    argv = [process.tool("qemu-img"), "create", "-q", "-f", "qcow2", "-F", disk.format]
    with full_disk_named(scratch):
        process.run([*argv, "-b", str(disk.path.resolve()), str(path)], LabError)
    return Disk(path, keep_writes=True)


def keep(disk: Disk, image: Path, force: bool) -> None:
    """Save what a guest that ended cleanly has left on ``disk`` as a qcow2 image, which is whole or absent."""
    with working(f"keeping the disk in {image}"), full_disk_named(image.parent):
        handle, name = tempfile.mkstemp(dir=image.parent, prefix=f".{image.name}.")
        try:
            argv = [process.tool("qemu-img"), "convert", "-q", "-f", disk.format, "-O", "qcow2"]
            process.run([*argv, str(disk.path), name], LabError)
            os.fsync(handle)
            os.fchmod(handle, 0o644)
            if force:
                Path(name).replace(image)
            else:
                image.hardlink_to(name)  # unlike renaming, never over what is there meanwhile
        except FileExistsError:
            raise UsageError(f"--keep: {image} exists by now; --force overwrites it.") from None
        finally:
            os.close(handle)
            Path(name).unlink(missing_ok=True)

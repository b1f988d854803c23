# SPDX-License-Identifier: GPL-2.0-only
"""Data disks: a file system that holds one big file, or directories of many, made without root."""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from foliolab import process
from foliolab.arch import Architecture
from foliolab.errors import DiskFull, LabError, UsageError
from foliolab.files import cache_directory, digest, emptied, locked, sweep
from foliolab.progress import say, working
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.tree import mke2fs

Filesystem = Literal["ext4", "xfs"]
FileContent = Literal["zeros", "stubs"]
"""What the file holds: zeros, or again and again the instruction of the guest's architecture that returns."""

DATA_FILE = "/data/file"
"""Where the file is once the disk is mounted on /data."""

LAYOUT = "1"
"""To be raised when the same request is to make another disk."""
_UUID = "f01101ab-0000-4000-8000-000000000001"
_BLOCK = 4096
_SPARE_INODES = 64
_FULL_BYTES = 64 << 20  # with less than this left, a failed write had no room
_FILL_SECONDS_PER_GIB = 60
_MEMORY_MIB = 512


def _disk_bytes(file_bytes: int) -> int:
    """Room for the file and for the metadata of either file system; XFS wants 300 MiB at least."""
    wanted = max(file_bytes + file_bytes // 16 + (192 << 20), 320 << 20)
    return -(-wanted // (1 << 20)) << 20


def _make_filesystem(filesystem: Filesystem, path: Path, files: int) -> None:
    if filesystem == "ext4":
        inodes = ["-N", str(files + _SPARE_INODES)] if files > 1 else ["-i", str(1 << 20)]  # few
        mke2fs(path, "-U", _UUID, *inodes, extended=f"hash_seed={_UUID},")
    else:
        argv = [process.tool("mkfs.xfs"), "-q", "-f", "-m", f"uuid={_UUID}"]
        process.run([*argv, str(path)], LabError)


def written_by_guest(guest: GuestConfig, jobs: Iterable[Sequence[str]], place: Path, seconds: float) -> None:
    """Boot a guest, run these jobs, each within ``seconds``, and power it off, so that all is on its disks.

    ``place`` is the directory with the disks; the console's log goes there, too.
    """
    try:
        with Guest(guest, place / "console") as machine:
            for job in jobs:
                machine.run(job, seconds).checked()
            machine.power_off()
    except LabError as error:
        # Guests word a full disk in many ways: look at the disk itself, before the files that fill it are removed.
        if shutil.disk_usage(place).free < _FULL_BYTES:
            raise DiskFull(f"No space left on the disk that holds {place}.") from error
        raise


@dataclass(frozen=True)
class DataDisk:
    """A file system with one file of ``file_bytes``, really allocated and written, at ``DATA_FILE``.

    Zeros take next to no room on the host. Every guest sees it as it was made.
    """

    filesystem: Filesystem
    file_bytes: int
    content: FileContent = "zeros"

    def path(self, arch: Architecture) -> Path:
        """Where the cache has the one for guests of ``arch``; zeros are the same for all."""
        special = [] if self.content == "zeros" else [self.content, arch.name]
        key = digest([self.filesystem, str(self.file_bytes), LAYOUT, *special])
        return cache_directory() / "disks" / f"{self.filesystem}-{key}.qcow2"

    def prepare(self, guest: GuestConfig) -> Disk:
        """The disk to give to a guest, made first if the cache does not have it.

        ``guest`` is the configuration of a guest that can mount it; its own disks are ignored.
        """
        if self.file_bytes <= 0 or self.file_bytes % _BLOCK:
            raise UsageError(f"The file of a data disk has to be a multiple of {_BLOCK} bytes, not {self.file_bytes}.")
        path = self.path(guest.arch)
        text = f"making a disk: {self.filesystem}, a file of {self.file_bytes / (1 << 30):g} GiB"
        fill = [":fill", DATA_FILE, str(self.file_bytes), self.content]
        publish(path, text, lambda place: _make(place, guest, self.filesystem, 1, self.file_bytes, [fill]))
        return Disk(path)


@dataclass(frozen=True)
class FileTrees:
    """A file system with directories of many files, really allocated and written, below ``/data``.

    ``trees`` names them as ``guest/files.h`` does: "100x4096" has a hundred files of 4,096 pages of 4 KiB, of zeros.
    """

    filesystem: Filesystem
    trees: tuple[str, ...]

    def prepare(self, guest: GuestConfig) -> Disk:
        """As ``DataDisk.prepare``."""
        shapes = [tuple(map(int, tree.split("x"))) for tree in self.trees]
        files = sum(count for count, _ in shapes)
        file_bytes = sum(count * pages for count, pages in shapes) * _BLOCK
        jobs = [["make-files", "/data", str(count), str(pages)] for count, pages in shapes]
        path = cache_directory() / "disks" / f"{self.filesystem}-{digest([LAYOUT, *self.trees])}.qcow2"
        text = f"making a disk: {self.filesystem}, {files} files"
        publish(path, text, lambda place: _make(place, guest, self.filesystem, files, file_bytes, jobs))
        return Disk(path)


def publish(path: Path, text: str, make: Callable[[Path], Path]) -> None:
    """Have ``make`` make what the cache is to have at ``path``, in a directory that it is given, unless it is there.

    ``text`` says what it does. The directory is gone afterwards, and so is what a kill has left of another one.
    """
    with locked(path.with_suffix(".lock"), lambda: say(f"waiting for another process {text}")):
        if path.exists():
            return
        sweep(path.parent)
        with working(text), emptied(path.with_suffix(".partial")) as place:
            made = make(place)
            with made.open("rb") as stream:
                os.fsync(stream.fileno())
            made.rename(path)


def _make(
    place: Path, guest: GuestConfig, filesystem: Filesystem, files: int, file_bytes: int, jobs: Sequence[Sequence[str]]
) -> Path:
    """A disk for ``files`` files, ``file_bytes`` in all; ``jobs`` write them in a guest, on /data."""
    raw, disk = place / "raw", place / "disk"
    with raw.open("wb") as stream:
        stream.truncate(_disk_bytes(file_bytes))
    _make_filesystem(filesystem, raw, files)
    argv = [process.tool("qemu-img"), "convert", "-q", "-O", "qcow2", str(raw), str(disk)]
    process.run(argv, LabError)
    raw.unlink()
    config = replace(guest, memory_mib=_MEMORY_MIB, cpus=1, disks=(Disk(disk, keep_writes=True),), kernel_name="")
    mount = [":mount", "/dev/vda", "/data", filesystem]
    written_by_guest(config, [mount, *jobs], place, 60 + _FILL_SECONDS_PER_GIB * file_bytes / (1 << 30))
    return disk

# SPDX-License-Identifier: GPL-2.0-only
"""Disks with a storage engine's database: an ext4 file system made without root, filled by the engine in a guest."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from foliolab.apt import KEYRING
from foliolab.arch import Architecture
from foliolab.disks import engines, git, lucene
from foliolab.disks.userland import Userland
from foliolab.errors import require_known
from foliolab.files import GUEST, cache_directory, digest, digest_files
from foliolab.process import tool
from foliolab.vm.disk import publish, written_by_guest
from foliolab.vm.guest import Disk, GuestConfig
from foliolab.vm.tree import mke2fs

MOUNTED = "/data"
"""Below this, each store's disk is mounted under the store's name."""
ROOT = "/programs"
"""Where the root directory of engines that need one is mounted."""

_LAYOUT = "1"
"""To be raised when the same content is to make another disk."""
_UUID = "f01101ab-0000-4000-8000-000000000003"
_DISK_BYTES = 2 << 30
"""Room for the database, two copies of it and a journal; what is not used takes no room on the host."""
_BUILD_SECONDS = 900
_BUILD_MEMORY_MIB = 768
_HARNESS = ("windows/store.c", "patterns.h", "random.h")
"""The files of guest/ that decide what is put into a database."""


@dataclass(frozen=True)
class StoreDisk:
    """The disk of one store: drivers in /bin, the database in /data, how many records it has in /records."""

    arch: Architecture
    store: str
    drivers: Mapping[str, Path]
    """Executables that run the engine, by the names that the harness calls them by."""
    database: Path | None = None
    """A directory that is the database; without one, the engine makes it in a guest."""
    records: int = 0
    """How many are put into it then."""
    root: Userland | None = None
    """The root directory that the engine needs, on a disk of its own."""

    @property
    def hash(self) -> str:
        """Over everything that decides what is on the disk."""
        parts: list[str | bytes] = [_LAYOUT, self.arch.name, self.store, str(self.records)]
        for name, path in sorted(self.drivers.items()):
            parts += [name, path.read_bytes()]
        if self.database:
            # Its directory is named by the hash of what it was made from.
            parts.append(self.database.name)
        else:
            parts.append(digest_files(GUEST / name for name in _HARNESS))
        if self.root:
            parts.append(self.root.hash)
        return digest(parts)

    @property
    def path(self) -> Path:
        return cache_directory().resolve() / "stores" / f"{self.arch.name}-{self.store}-{self.hash}.img"

    def prepare(self, guest: GuestConfig) -> Disk:
        """The disk to give to a guest, made first if the cache does not have it.

        ``guest`` is the configuration of a guest that can mount it; its own disks are ignored.
        """
        text = f"making a disk: {self.arch.name} database of {self.store}"
        root = (self.root.prepare(guest),) if self.root and not self.path.exists() else ()
        publish(self.path, text, lambda place: self._make(place, guest, root))
        return Disk(self.path, "raw")

    def _make(self, place: Path, guest: GuestConfig, root: tuple[Disk, ...]) -> Path:
        tree, disk = place / "tree", place / "disk"
        self._fill(tree)
        with disk.open("wb") as stream:
            stream.truncate(_DISK_BYTES)
        options = ("-U", _UUID, "-i", str(1 << 18), "-d", str(tree))
        mke2fs(disk, *options, extended=f"hash_seed={_UUID},root_owner=0:0,")
        if not self.database:
            disks = (Disk(disk, "raw", keep_writes=True), *root)
            config = replace(guest, disks=disks, memory_mib=_BUILD_MEMORY_MIB)
            build = ["store", "--store", self.store, "--workload", "build", "--records", str(self.records)]
            written_by_guest(config, [*mounts([self], config), build], place, _BUILD_SECONDS)
        return disk

    def _fill(self, tree: Path) -> None:
        (tree / "bin").mkdir(parents=True)
        for name, path in self.drivers.items():
            shutil.copyfile(path, tree / "bin" / name)
            (tree / "bin" / name).chmod(0o755)
        if self.database:
            shutil.copytree(self.database, tree, dirs_exist_ok=True, symlinks=True)
        else:
            (tree / "data").mkdir()


def prepare(stores: Sequence[StoreDisk], guest: GuestConfig) -> list[Disk]:
    """The disks of a guest that works with ``stores``: theirs, then the root directory that some of them need."""
    roots = {store.root for store in stores if store.root}
    return [store.prepare(guest) for store in stores] + [root.prepare(guest) for root in roots]


def mounts(stores: Sequence[StoreDisk], guest: GuestConfig) -> list[list[str]]:
    """The jobs that mount the disks which ``prepare`` gave to a guest."""
    disks = [f"/dev/{guest.disk_name(number)}" for number in range(len(guest.disks))]
    own = [[":mount", disk, f"{MOUNTED}/{store.store}", "ext4"] for disk, store in zip(disks, stores, strict=False)]
    root = [[":mount", disks[len(stores)], ROOT, "xfs", "ro"]] if any(store.root for store in stores) else []
    return [[":mount", "tmpfs", MOUNTED, "tmpfs"], *own, *root]


STORES = (*engines.DRIVERS, "lucene", "git")

CHECKS: tuple[tuple[str, Callable[[], object]], ...] = (
    ("bbolt", partial(tool, "go")),
    ("mdbx", engines.cargo),
    *(("lucene and git", partial(tool, name)) for name in ("mvn", "java", KEYRING)),
)
"""What some stores need beyond what all of the lab does: functions that raise MissingTool without it."""

_RECORDS = 100_000
"""Of 1,000 bytes on average: about 160 MiB of pages."""


@cache
def store_disk(arch: Architecture, name: str) -> StoreDisk:
    """The disk of a store, not made yet; its engine is fetched and compiled first if the cache does not have it.

    UsageError for a store that is not there.
    """
    require_known("There is no store", [name], STORES)
    match name:
        case "lucene":
            return StoreDisk(arch, name, {}, records=_RECORDS, root=lucene.root(arch))
        case "git":
            return StoreDisk(arch, name, git.drivers(arch), git.repository(), root=lucene.root(arch))
        case _:
            return StoreDisk(arch, name, engines.DRIVERS[name](arch), records=_RECORDS)

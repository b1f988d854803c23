# SPDX-License-Identifier: GPL-2.0-only
"""Kernels as a distribution ships them: Debian's binary packages, booted as they are, with modules of theirs."""

import gzip
import lzma
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from foliolab.apt import Downloads, package_field, unpack
from foliolab.arch import Architecture
from foliolab.errors import SourceError
from foliolab.files import cache_directory, digest, digest_files, made_once
from foliolab.kernel.debian_source import SUITES
from foliolab.kernel.name import RELEASES
from foliolab.progress import working

_NEEDED = ("virtio_pci", "virtio_blk", "virtio_console", "ext4")
"""Modules without which a guest of the lab does not work."""
_WANTED = ("crc32c_generic", *_NEEDED, "virtio_rng", "xfs", "zram", "lzo_rle")
"""What guests use, where the kernel has it built in or as a module.

File systems look for crc32c when they are loaded, and zram for what it compresses with, lzo_rle.
"""

_UNPACKERS: dict[str, Callable[[bytes], bytes]] = {".ko": bytes, ".xz": lzma.decompress, ".gz": gzip.decompress}


def package_name(version: str, arch: Architecture) -> str:
    """A regular expression for Debian's packages of the plain kernel ``version``, such as "6.12", or of a release's.

    Not for those that are for clouds or real time, or unsigned. linux-image-6.12.43+deb13-amd64 is one.
    """
    number = r"\d+\.\d+" if version in RELEASES else re.escape(version)
    return rf"linux-image-{number}\.\d+(-\d+)?([+~][a-z]+\d+)*-{arch.debian}"


def fetched(version: str, arch: Architecture, *, newest: bool = False) -> tuple[Path, ...]:
    """The package files, in the cache, the kernel's own first.

    What was fetched once stays until ``newest`` asks again. Newer kernels have the image and the modules in packages of
    their own.
    """

    def make(partial: Path) -> None:
        with working(f"Fetching Debian's kernel {version} for {arch.name}"):
            _fetch(version, arch, partial)

    home = made_once(cache_directory() / "packages", f"kernel-{version}-{arch.name}", make, anew=newest)
    return tuple(sorted(home.glob("*.deb"), key=lambda file: (not file.name.startswith("linux-image"), file.name)))


def _fetch(version: str, arch: Architecture, directory: Path) -> None:
    suites = (RELEASES[version],) if version in RELEASES else SUITES
    shown = "*" if version in RELEASES else f"{version}.*"
    with Downloads(directory, suites, arch) as packages:
        kernel = packages.bring(package_name(version, arch), f"linux-image-{shown}-{arch.debian}")
        for name in re.findall(r"\blinux-(?:base|binary|modules)-\d[\w.+~-]*", package_field(kernel, "Depends")):
            packages.bring(re.escape(name), name)


def identity(packages: Sequence[Path]) -> str:
    """Hash of all that decides about a kernel that is made from these packages."""
    return digest([digest_files(packages, packages[0].parent), *_WANTED])


def unpacked(packages: Sequence[Path], arch: Architecture, directory: Path) -> tuple[str, str]:
    """Put the kernel's image, its configuration as ``config``, and ``modules/`` into ``directory``.

    Modules are named so that each comes after all that it needs. Returns the release and the version of Linux.
    """
    kernel = packages[0].name
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        tree = Path(scratch)
        for package in packages:
            unpack(package, tree)
        images = [*tree.glob("boot/vmlinu?-*"), *tree.glob("usr/lib/modules/*/vmlinu?")]
        modules = [*tree.glob("lib/modules/*/kernel"), *tree.glob("usr/lib/modules/*/kernel")]
        configs = [*tree.glob("boot/config-*"), *tree.glob("usr/lib/modules/*/config")]
        if not len(images) == len(modules) == len(configs) == 1:
            raise SourceError(f"{kernel} holds no kernel with its modules where we know to look.")
        release = modules[0].parent.name
        images[0].rename(directory / arch.image)
        configs[0].rename(directory / "config")
        (directory / "modules").mkdir()
        for number, (name, file) in enumerate(_modules(modules[0].parent, kernel)):
            (directory / "modules" / f"{number:02}-{name}.ko").write_bytes(file)
    found = re.match(r"(?:\d+:)?(\d+\.\d+(?:\.\d+)*)", package_field(packages[0], "Version"))
    return release, found[1] if found else release


def _modules(place: Path, kernel: str) -> list[tuple[str, bytes]]:
    """Names and contents of the wanted modules and all that they need, in the order in which they can be loaded."""
    builtin = {_name(Path(line)) for line in (place / "modules.builtin").read_text().split()}
    files = {_name(file): file for file in place.glob("kernel/**/*.ko*")}
    ordered: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in ordered or name in builtin or name not in files:
            return
        found = content(files[name])
        for other in _needs(found):
            add(other)
        ordered[name] = found

    for name in _WANTED:
        add(name)
    if missing := [name for name in _NEEDED if name not in ordered and name not in builtin]:
        raise SourceError(f"{kernel} lacks what guests need: {', '.join(missing)}.")
    return list(ordered.items())


def _name(file: Path) -> str:
    """A module's name; its file may have dashes, and be compressed."""
    return file.name.partition(".ko")[0].replace("-", "_")


def content(file: Path) -> bytes:
    """What a file with a module holds, which may be compressed."""
    unpack = _UNPACKERS.get(file.suffix)
    if not unpack:
        raise SourceError(f"The kernel's modules are compressed in a way that we do not know: {file.name}.")
    return unpack(file.read_bytes())


def _needs(module: bytes) -> list[str]:
    """What a module says that it needs: other modules' symbols, and what is to be loaded before it."""
    names: list[str] = []
    for listed in re.findall(rb"\0depends=([^\0]*)(?=\0)", module):
        names += listed.decode().split(",")
    for listed in re.findall(rb"\0softdep=pre: ([^\0]*)(?=\0)", module):
        names += listed.decode().split(" post:")[0].split()
    return [name.replace("-", "_") for name in names if name]

# SPDX-License-Identifier: GPL-2.0-only
"""The driver of a disk that takes time: built into the lab's own kernels, a module for those that Debian has built."""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.errors import SourceError
from foliolab.files import DEVICE, cache_directory, digest, digest_files, made_once
from foliolab.kernel.config import numbers
from foliolab.kernel.git import Repository
from foliolab.kernel.module import compiled, headers
from foliolab.kernel.name import RELEASES, KernelName, parse_name
from foliolab.kernel.tarball import Source, version_in, version_of
from foliolab.process import compiler
from foliolab.progress import Reporter

EXTRA = "timed-disk"
"""The optional fragment of kernels that have it."""

_DRIVER = "timed_disk"
_PLACE = "drivers/block"
_FILES = (f"{_DRIVER}.c", "device_time.h")
_APPENDED = {
    "Kconfig": '\nconfig TIMED_DISK\n\tbool "A disk that takes time"\n\tdepends on BLOCK\n',
    "Makefile": f"\nobj-$(CONFIG_TIMED_DISK) += {_DRIVER}.o\n",
}
"""To files of the kernel's own."""

_SINCE = "6.11"
"""The first version of Linux that the driver compiles against."""


def _require_version(version: str, kernel: str = "") -> None:
    if numbers(version) < numbers(_SINCE):
        of = f" ({kernel})" if kernel else ""
        raise SourceError(f"Timed disks take Linux {_SINCE} or newer, not {version}{of}.")


def check_names(texts: Iterable[str]) -> None:
    """Raise SourceError for a kernel that cannot have it, before any is fetched or built.

    That is as far as names tell: that of a release of Debian, or of a tarball, does not.
    """
    for name in map(parse_name, texts):
        if version := _version(name):
            _require_version(version, name.text)


def _version(name: KernelName) -> str:
    if name.debian or name.image:
        return "" if name.image in RELEASES else name.debian or name.image
    if name.ref:
        repository = Repository.at(name.path)
        makefile = repository.file(repository.tree(name.ref), "Makefile") or b""
        return version_in(makefile.decode(errors="replace"), name.text)
    return version_of(name.path) if name.path.is_dir() else ""


def with_driver(source: Source, changed: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
    """``changed`` and the driver, as ``working_tree`` takes them. SourceError for a tree that cannot have it."""
    _require_version(source.version)
    added: dict[str, bytes | None] = {f"{_PLACE}/{name}": (DEVICE / name).read_bytes() for name in _FILES}
    for name, text in _APPENDED.items():
        file = f"{_PLACE}/{name}"
        before = changed.get(file) or source.read(file)
        if before is None:
            raise SourceError(f"{source.place} has no {file}, which the disk that takes time belongs into.")
        added[file] = before + text.encode()
    return {**changed, **added}


def built(release: str, arch: Architecture, report: Reporter) -> Path:
    """The module for the kernel of which ``uname -r`` prints ``release``, from the cache or built.

    That of its directory is a hash over its sources, the kernel's headers, and the compiler. Raises BuildError, or
    SourceError for a kernel that cannot have it.
    """
    _require_version(release)
    found = headers(release, arch, report)
    program, version = compiler(arch)
    files = [DEVICE / name for name in (*_FILES, "Kbuild")]
    key = digest([found.hash, version, digest_files(files)])

    def make(partial: Path) -> None:
        source = partial / "source"
        source.mkdir()
        for file in files:
            shutil.copyfile(file, source / file.name)
        with report.task(f"Building the disk that takes time for {release}"):
            compiled(source, found, program)
        (source / f"{_DRIVER}.ko").rename(partial / f"98-{_DRIVER}.ko")
        shutil.rmtree(source)

    return made_once(cache_directory() / "modules", key, make) / f"98-{_DRIVER}.ko"

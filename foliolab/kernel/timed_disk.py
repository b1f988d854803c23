# SPDX-License-Identifier: GPL-2.0-only
"""The driver of a disk that takes time: built into the lab's own kernels, a module for those that Debian has built."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.errors import SourceError
from foliolab.files import DEVICE, digest_files
from foliolab.kernel.config import numbers
from foliolab.kernel.debian_headers import built_module
from foliolab.kernel.name import RELEASES, parse_name
from foliolab.kernel.source import Source

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
    """Raise SourceError for a version of Debian's that cannot have it, before any kernel is fetched or built.

    What else a kernel may be called does not say its version.
    """
    for name in map(parse_name, texts):
        version = name.debian or name.image
        if version and version not in RELEASES:
            _require_version(version, name.text)


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


def built(release: str, arch: Architecture) -> Path:
    """The module for the kernel of which ``uname -r`` prints ``release``, from the cache or built.

    Raises BuildError, or SourceError for a kernel that cannot have it.
    """
    _require_version(release)
    files = {name: DEVICE / name for name in (*_FILES, "Kbuild")}
    return built_module(f"98-{_DRIVER}.ko", files, digest_files(files.values()), release, arch)

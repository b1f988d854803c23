# SPDX-License-Identifier: GPL-2.0-only
"""What Debian has for building modules of a kernel of its own: headers and tools, unpacked and not installed."""

import platform
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from foliolab.arch import NATIVE, Architecture
from foliolab.errors import SourceError, UsageError
from foliolab.files import cache_directory, digest_files, made_once
from foliolab.kernel.debian import SUITES
from foliolab.packages import Downloads, fetch, package_field, unpack
from foliolab.progress import Reporter

_LIBRARIES = ("libc6", "libelf1t64", "libssl3t64", "zlib1g")
_LIBRARIES_SUITE = "trixie"
"""What the tools of Debian's newest kernels want, where this machine is older."""


@dataclass(frozen=True)
class Headers:
    """Of one kernel."""

    hash: str
    source: Path
    """Headers of all flavours, with the Makefile."""
    build: Path
    """What belongs to this one: configuration, versions of symbols."""


def headers(release: str, arch: Architecture, report: Reporter) -> Headers:
    """Headers of the kernel of which ``uname -r`` prints ``release``, in the cache.

    UsageError for an architecture that is not this machine's; LabError if no suite of Debian has them any more.
    """
    if arch is not NATIVE:
        raise UsageError(f"Debian's tools for modules of {arch.name} run on {arch.name} only.")
    packages = _packages(release, report)
    key = digest_files(packages, packages[0].parent)

    def make(partial: Path) -> None:
        with report.task(f"Unpacking headers of {release}"):
            for package in packages:
                unpack(package, partial)
            _make_tools_run(partial, report)

    tree = made_once(cache_directory() / "headers", key, make)
    build = tree / f"usr/src/linux-headers-{release}"
    common = tree / f"usr/src/linux-headers-{release.removesuffix(f'-{arch.debian}')}-common"
    if not (common / "Makefile").exists() or not (build / ".config").exists():
        raise SourceError(f"The packages with headers of {release} do not hold them where we know to look.")
    return Headers(key, common, build)


def _packages(release: str, report: Reporter) -> list[Path]:
    """The package files: the headers, those of all flavours, and the tools."""

    def make(partial: Path) -> None:
        with report.task(f"Fetching Debian's headers of {release}"), Downloads(partial, SUITES) as packages:
            file = packages.bring(re.escape(f"linux-headers-{release}"), f"linux-headers-{release}")
            needs = package_field(file, "Depends")
            for name in re.findall(r"\blinux-(?:headers-[\w.+~-]+-common|kbuild-[\w.+~-]+)", needs):
                packages.bring(re.escape(name), name)

    home = made_once(cache_directory() / "packages", f"headers-{release}", make)
    return sorted(home.glob("*.deb"))


def _make_tools_run(tree: Path, report: Reporter) -> None:
    """Put a script before each program that wants a newer C library than this machine has."""
    programs = [path for path in tree.glob("usr/lib/linux-kbuild-*/**/*") if _wants_newer_library(path)]
    if not programs:
        return
    libraries = tree / "libraries"
    libraries.mkdir()
    with tempfile.TemporaryDirectory(dir=tree) as scratch:
        for package in fetch(NATIVE, _LIBRARIES, report, _LIBRARIES_SUITE):
            unpack(package.file, Path(scratch))
        for file in Path(scratch).glob("usr/lib*/**/*.so*"):
            if not (file.is_symlink() and file.readlink().name == file.name):
                file.rename(libraries / file.name)
    (loader,) = libraries.glob("ld-linux*.so.*")
    for program in programs:
        moved = program.rename(program.with_name(f"{program.name}.newer"))
        up = "/".join([".."] * (len(program.relative_to(tree).parts) - 1))
        program.write_text(
            "#!/bin/sh\n"
            f'here=$(dirname -- "$(readlink -f -- "$0")")\nlibraries=$here/{up}/libraries\n'
            f'exec "$libraries/{loader.name}" --library-path "$libraries" "$here/{moved.name}" "$@"\n'
        )
        program.chmod(moved.stat().st_mode)


def _wants_newer_library(path: Path) -> bool:
    """Whether a file is a program that names a version of the C library above this machine's."""
    if path.is_symlink() or not path.is_file() or not path.stat().st_mode & stat.S_IXUSR:
        return False
    content = path.read_bytes()
    wanted = [int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)(?=\0)", content)]
    return content.startswith(b"\x7fELF") and max(wanted, default=0) > int(platform.libc_ver()[1].split(".")[1])

# SPDX-License-Identifier: GPL-2.0-only
"""Headers of kernels that Debian has built, and modules compiled against them."""

import platform
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from foliolab.apt import Downloads, fetch, package_field, unpack
from foliolab.arch import NATIVE, Architecture
from foliolab.errors import BuildError, SourceError, UsageError
from foliolab.files import cache_directory, digest, digest_files, made_once
from foliolab.kernel.debian_source import SUITES
from foliolab.kernel.make import first_error
from foliolab.process import compiler as compiler_of
from foliolab.process import process_group, run, tool
from foliolab.progress import working

_LEFT_OUT = ("DEBUG_INFO", "DEBUG_INFO_BTF_MODULES")
"""Options that only make the module larger, and want a program that compilers do not bring."""
_NEWER = (("-fmin-function-alignment=16", "CC_HAS_MIN_FUNCTION_ALIGNMENT"),)
"""Flags that the compiler of a kernel had, and the option without which they are not asked for."""

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


def headers(release: str, arch: Architecture) -> Headers:
    """Headers of the kernel of which ``uname -r`` prints ``release``, in the cache.

    UsageError for an architecture that is not this machine's; LabError if no suite of Debian has them any more.
    """
    if arch is not NATIVE:
        raise UsageError(f"Debian's tools for modules of {arch.name} run on {arch.name} only.")
    packages = _packages(release)
    key = digest_files(packages, packages[0].parent)

    def make(partial: Path) -> None:
        with working(f"Unpacking headers of {release}"):
            for package in packages:
                unpack(package, partial)
            _make_tools_run(partial)

    tree = made_once(cache_directory() / "headers", key, make)
    build = tree / f"usr/src/linux-headers-{release}"
    common = tree / f"usr/src/linux-headers-{release.removesuffix(f'-{arch.debian}')}-common"
    if not (common / "Makefile").exists() or not (build / ".config").exists():
        raise SourceError(f"The packages with headers of {release} do not hold them where we know to look.")
    return Headers(key, common, build)


def _packages(release: str) -> list[Path]:
    """The package files: the headers, those of all flavours, and the tools."""

    def make(partial: Path) -> None:
        with working(f"Fetching Debian's headers of {release}"), Downloads(partial, SUITES) as packages:
            file = packages.bring(re.escape(f"linux-headers-{release}"), f"linux-headers-{release}")
            needs = package_field(file, "Depends")
            for name in re.findall(r"\blinux-(?:headers-[\w.+~-]+-common|kbuild-[\w.+~-]+)", needs):
                packages.bring(re.escape(name), name)

    home = made_once(cache_directory() / "packages", f"headers-{release}", make)
    return sorted(home.glob("*.deb"))


def _make_tools_run(tree: Path) -> None:
    """Put a script before each program that wants a newer C library than this machine has."""
    programs = [path for path in tree.glob("usr/lib/linux-kbuild-*/**/*") if _wants_newer_library(path)]
    if not programs:
        return
    libraries = tree / "libraries"
    libraries.mkdir()
    with tempfile.TemporaryDirectory(dir=tree) as scratch:
        for package in fetch(NATIVE, _LIBRARIES, _LIBRARIES_SUITE):
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


def built_module(module: str, sources: Mapping[str, Path], code: str, release: str, arch: Architecture) -> Path:
    """A module for the kernel of which ``uname -r`` prints ``release``, from the cache or built.

    ``module`` is the name of the file, which begins with its place in the order of loading: "99-name.ko". ``sources``
    is what it is made of: name -> file; and ``code`` a hash of that. The name of the directory is a hash over the code,
    the kernel's headers, and the compiler. Raises BuildError, with the compiler's first complaint.
    """
    found = headers(release, arch)
    compiler, version = compiler_of(arch)

    def make(partial: Path) -> None:
        source = partial / "source"
        copy_sources(sources, source)
        with working(f"Building {module} for {release}"):
            compiled(source, found, compiler)
        (source / module.partition("-")[2]).rename(partial / module)
        shutil.rmtree(source)

    return made_once(cache_directory() / "modules", digest([found.hash, version, code]), make) / module


def copy_sources(sources: Mapping[str, Path], directory: Path) -> None:
    """Have a module's sources in ``directory``, by their names."""
    for name, path in sources.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, directory / name)


def make_command(found: Headers, compiler: str) -> list[str]:
    """make with all that modules of this kernel take here, but for what to make of which."""
    without = [*_LEFT_OUT, *(option for flag, option in _NEWER if not _knows(compiler, flag))]
    return [
        tool("make"), "--silent", "-C", str(found.source), f"KBUILD_OUTPUT={found.build}", f"CC={compiler}",
        *(f"CONFIG_{option}=" for option in without),
    ]  # fmt: skip


def compiled(source: Path, found: Headers, compiler: str, *options: str) -> str:
    """Compile a complete copy of the sources where it lies, with more options of make's; returns what make printed.

    Raises BuildError, with the compiler's first complaint.
    """
    command = [*make_command(found, compiler), f"M={source}", *options, "modules"]
    log = source / "log"
    with log.open("wb") as output, process_group(command, output) as child:
        status = child.wait()
    text = log.read_text(errors="replace")
    if status:
        raise BuildError(f"The module does not build against {found.build.name}: {first_error(text)}")
    return text


def _knows(compiler: str, flag: str) -> bool:
    try:
        run([compiler, flag, "-x", "c", "-E", "/dev/null"], BuildError)
    except BuildError:
        return False
    return True

# SPDX-License-Identifier: GPL-2.0-only
"""The adaptive window as a module for kernels that Debian has built, compiled against their headers."""

import os
import platform
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from foliolab.arch import NATIVE, Architecture
from foliolab.errors import BuildError, SourceError, UsageError
from foliolab.files import KERNEL, MODULE, cache_directory, digest, digest_files, made_once
from foliolab.kernel.debian import SUITES
from foliolab.kernel.make import first_error
from foliolab.packages import Downloads, fetch, package_field, unpack
from foliolab.process import compiler as compiler_of
from foliolab.process import process_group, run, tool
from foliolab.progress import Reporter

NAME = "mmap_readahead_window"
_POLICY = tuple(KERNEL / f"files/mm/mmap_readahead_window.{kind}" for kind in "ch")
"""What the kernel patches and the module have in common."""

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


_SOURCES, _RECIPES = (".c", ".h"), ("Kbuild", "Makefile", "dkms.conf")
"""Of the module's directory, without what make leaves there."""
_CALLERS = ("Makefile", "dkms.conf")
"""Which only ask the kernel's own make for it."""


def sources(directory: Path = MODULE) -> dict[str, Path]:
    """All that it is made of, with the policy: name in a directory that is complete by itself -> file."""
    there = (path for path in directory.iterdir() if path.suffix in _SOURCES or path.name in _RECIPES)
    own = {path.name: path for path in there if not path.name.endswith(".mod.c")}
    return own | {f"mm/{path.name}": path for path in _POLICY}


def code_hash(directory: Path = MODULE) -> str:
    """Over what is compiled, and how, as foliolab.kernel.code has it of a series."""
    return digest_files(path for path in sources(directory).values() if path.name not in _CALLERS)


def built(release: str, arch: Architecture, report: Reporter) -> Path:
    """The module for the kernel of which ``uname -r`` prints ``release``, from the cache or built.

    Its name comes last among the modules of a guest; that of its directory is a hash over its sources, the kernel's
    headers, and the compiler. Raises BuildError, with the compiler's first complaint.
    """
    found = headers(release, arch, report)
    compiler, version = compiler_of(arch)
    key = digest([found.hash, version, code_hash()])

    def make(partial: Path) -> None:
        _copy(partial / "source")
        with report.task(f"Building the module for {release}"):
            compiled(partial / "source", found, compiler)
        (partial / "source" / f"{NAME}.ko").rename(partial / f"99-{NAME}.ko")
        shutil.rmtree(partial / "source")

    return made_once(cache_directory() / "modules", key, make) / f"99-{NAME}.ko"


def export(directory: Path) -> None:
    """Write the sources into ``directory``, complete, as DKMS wants them; UsageError if it exists."""
    if directory.exists():
        raise UsageError(f"{directory} exists already; name a new directory for the module's sources.")
    partial = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    _copy(partial)
    partial.rename(directory)


def _copy(directory: Path) -> None:
    for name, path in sources().items():
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


PACKAGE = "foliolab-readahead-dkms"

_CONTROL = """\
Package: {package}
Version: {version}
Architecture: all
Section: kernel
Priority: optional
Maintainer: foliolab maintainers <maintainers@foliolab.invalid>
Depends: dkms
Description: adaptive readahead of mapped files, as a kernel module
 Reads of a mapped file what has paid in it so far, instead of a window of a
 fixed size around each page that is touched. DKMS builds the module for each
 kernel whose headers are installed; modprobe {name} loads it.
"""
_COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: the foliolab maintainers
License: GPL-2.0-only
 On Debian, the licence is in /usr/share/common-licenses/GPL-2.
"""
_SCRIPTS = {
    # What DKMS has for packages: it builds for the kernel that runs and the newest, or in a chroot for all there are.
    "postinst": 'case $1 in configure) /usr/lib/dkms/common.postinst {name} {version} "" "" "${{2-}}" ;; esac',
    "prerm": "case $1 in remove | upgrade | deconfigure) dkms remove -m {name} -v {version} --all || true ;; esac",
}


def name_and_version() -> tuple[str, str]:
    """What dkms.conf calls the module."""
    text = (MODULE / "dkms.conf").read_text()
    name, version = (re.findall(rf'^PACKAGE_{word}="(.+)"$', text, re.MULTILINE)[0] for word in ("NAME", "VERSION"))
    return name, version


def package(directory: Path) -> Path:
    """Write the package into ``directory``; the same sources make the same bytes.

    UsageError if there is no such directory.
    """
    if not directory.is_dir():
        raise UsageError(f"There is no directory {directory} to put the package into.")
    name, version = name_and_version()
    file = directory / f"{PACKAGE}_{version}_all.deb"
    with tempfile.TemporaryDirectory(dir=directory, prefix=f".{PACKAGE}.") as scratch:
        tree = Path(scratch) / "tree"
        (tree / "usr/src").mkdir(parents=True)
        export(tree / f"usr/src/{name}-{version}")
        texts = {"DEBIAN/control": _CONTROL.format(package=PACKAGE, name=NAME, version=version)}
        texts[f"usr/share/doc/{PACKAGE}/copyright"] = _COPYRIGHT
        for script, command in _SCRIPTS.items():
            texts[f"DEBIAN/{script}"] = f"#!/bin/sh\nset -e\n{command.format(name=name, version=version)}\n"
        for path, text in texts.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        for entry in (tree, *tree.rglob("*")):
            entry.chmod(0o755 if entry.is_dir() or entry.name in _SCRIPTS else 0o644)
        built = Path(scratch) / file.name
        # Time stamps that are newer become this one.
        environment = os.environ | {"SOURCE_DATE_EPOCH": "0"}
        make = [tool("dpkg-deb"), "--root-owner-group", "-Zxz", "--build", str(tree), str(built)]
        run(make, BuildError, env=environment)
        built.rename(file)
    return file

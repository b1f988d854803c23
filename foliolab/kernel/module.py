# SPDX-License-Identifier: GPL-2.0-only
"""The adaptive window as a module for kernels that Debian has built, compiled against their headers."""

import shutil
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.errors import BuildError, UsageError
from foliolab.files import KERNEL, MODULE, cache_directory, digest, digest_files, made_once
from foliolab.kernel.headers import Headers, headers
from foliolab.kernel.make import first_error
from foliolab.process import compiler as compiler_of
from foliolab.process import process_group, run, tool
from foliolab.progress import Reporter

NAME = "mmap_readahead_window"
_POLICY = tuple(KERNEL / "files/include/linux" / f"mmap_readahead_{part}.h" for part in ("prior", "window"))
"""The headers that the kernel patches and the module have in common."""

_LEFT_OUT = ("DEBUG_INFO", "DEBUG_INFO_BTF_MODULES")
"""Options that only make the module larger, and want a program that compilers do not bring."""
_NEWER = (("-fmin-function-alignment=16", "CC_HAS_MIN_FUNCTION_ALIGNMENT"),)
"""Flags that the compiler of a kernel had, and the option without which they are not asked for."""


_SOURCES, _RECIPES = (".c", ".h"), ("Kbuild", "Makefile", "dkms.conf")
"""Of the module's directory, without what make leaves there."""
_CALLERS = ("Makefile", "dkms.conf")
"""Which only ask the kernel's own make for it."""


def sources(directory: Path = MODULE) -> dict[str, Path]:
    """All that it is made of, with the policy: name in a directory that is complete by itself -> file."""
    there = (path for path in directory.iterdir() if path.suffix in _SOURCES or path.name in _RECIPES)
    own = {path.name: path for path in there if not path.name.endswith(".mod.c")}
    return own | {f"include/linux/{path.name}": path for path in _POLICY}


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

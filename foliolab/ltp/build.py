# SPDX-License-Identifier: GPL-2.0-only
"""LTP's programs, compiled statically from a git tree of the user's."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from foliolab import process
from foliolab.arch import Architecture
from foliolab.errors import BuildError, SourceError
from foliolab.files import cache_directory, digest, made_once
from foliolab.ltp.suite import CHOSEN, DIRECTORIES, Test, read_lists
from foliolab.progress import Reporter
from foliolab.vm.tree import make_ext4

_LAYOUT = "1"
"""To be raised when the same tree is to be compiled otherwise."""
_FLAGS = ("CFLAGS=-O2 -w", "LDFLAGS=-static -s")


@dataclass(frozen=True)
class LtpTree:
    """The commit that a git tree of LTP stands on."""

    place: Path
    commit: str
    version: str
    """As git describes it."""
    tests: tuple[Test, ...]


@dataclass(frozen=True)
class Ltp:
    """The same, compiled."""

    tree: LtpTree
    key: str
    """Hash of all that was compiled, and how."""
    disk: Path
    """An ext4 file system with all programs."""

    @property
    def version(self) -> str:
        return f"{self.tree.version} ({self.tree.commit[:12]})"


def read_tree(tree: Path) -> LtpTree:
    """SourceError if it is none of LTP."""

    def said(*command: str) -> str:
        return _git(tree, *command).decode().strip()

    try:
        place, commit = Path(said("rev-parse", "--show-toplevel")), said("rev-parse", "HEAD")
        tests = read_lists({name: said("show", f"{commit}:runtest/{name}") for name in CHOSEN})
        return LtpTree(place, commit, said("describe", "--tags", "--always"), tests)
    except SourceError as error:
        raise SourceError(f"{tree} is no git tree of LTP with the tests that are run: {error}") from error


def _git(place: Path, *arguments: str) -> bytes:
    return process.git(SourceError, *arguments, place=place, alone=False)


def build_ltp(tree: LtpTree, arch: Architecture, report: Reporter) -> Ltp:
    """A tree's commit compiled for ``arch``; cached. BuildError if it cannot be."""
    compiler, version = process.compiler(arch)
    key = digest([_LAYOUT, tree.commit, arch.name, version, *_FLAGS, *DIRECTORIES])

    def make(partial: Path) -> None:
        source, programs = partial / "source", partial / "programs"
        source.mkdir()
        archive = _git(tree.place, "archive", tree.commit)
        process.run([process.tool("tar"), "--extract", "--directory", str(source)], BuildError, stdin=archive)
        _compile(source, arch, compiler, report)
        programs.mkdir()
        called = {test.program for test in tree.tests}
        for directory in DIRECTORIES:
            for path in (source / "testcases" / directory).iterdir():
                if path.is_file() and (path.name in called or os.access(path, os.X_OK)):  # a script may not be
                    shutil.copyfile(path, programs / path.name)
                    (programs / path.name).chmod(0o755)
        if lost := called - {path.name for path in programs.iterdir()}:
            raise BuildError(f"LTP was compiled, but without {', '.join(sorted(lost))}.")
        make_ext4(partial / "disk", None, programs)
        shutil.rmtree(source)
        shutil.rmtree(programs)

    return Ltp(tree, key, made_once(cache_directory() / "ltp", key, make) / "disk")


def _compile(source: Path, arch: Architecture, compiler: str, report: Reporter) -> None:
    process.require("ltp")
    make = [process.tool("make"), "--silent", f"--jobs={os.cpu_count() or 1}"]
    host = [] if arch.native else [f"--host={Path(compiler).name.removesuffix('-gcc')}"]
    with report.task("compiling LTP's tests", len(DIRECTORIES) + 2) as task:
        task.note("configure")
        process.run([*make, "autotools"], BuildError, cwd=source)
        process.run(["./configure", "--quiet", *host, *_FLAGS], BuildError, cwd=source)
        task.advance()
        for directory in ("lib", *(f"testcases/{name}" for name in DIRECTORIES)):
            task.note(directory)
            process.run([*make, "-C", directory], BuildError, cwd=source)
            task.advance()

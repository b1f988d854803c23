# SPDX-License-Identifier: GPL-2.0-only
"""Storage engines as they are published, and the drivers of guest/stores around them, as static executables."""

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from foliolab import apt, process
from foliolab.arch import Architecture
from foliolab.errors import BuildError, LabError, MissingTool
from foliolab.files import GUEST, cache_directory, digest, digest_files, made_once, sha256
from foliolab.progress import working

_SOURCES = GUEST / "stores"

# bbolt's version is in guest/stores/bbolt/go.mod; those of LMDB and SQLite are the Debian release's.
_MDBX_CRATE = "mdbx-sys"
_MDBX_VERSION = "14.4.0"
_MDBX_HASHES = {
    "mdbx.c": "58b770f90b75c533fd66d6d040764f75589565a2bc46034cc2ec2d8d9b257176",
    "mdbx.h": "0290c40b3a40346eb2e892d17c50b9a488464c116ba317c2ad977e78ae87451b",
    "mdbx-internals.h": "592c5537e226e7b8b504801d1de00a88d62f227895467c99db44ce0ada975108",
}
_CARGO_VERSION = (1, 85)
"""The first that can read the crate's manifest."""
_MANIFEST = f"""\
[package]
name = "engines"
version = "0.0.0"
edition = "2021"

[lib]
path = "nothing.rs"

[dependencies]
{_MDBX_CRATE} = "={_MDBX_VERSION}"
"""

_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-std=gnu11")
# Warnings in there are not ours; without the other two, no build would be like the one before.
_MDBX_FLAGS = ("-O2", "-w", "-DNDEBUG", "-std=gnu11", '-DMDBX_BUILD_FLAGS=""', '-DMDBX_BUILD_TIMESTAMP=""')

_GO_MODULES = ("go.etcd.io/bbolt", "golang.org/x/sys")
_GO_FLAGS = ("-trimpath", "-mod=vendor", "-buildvcs=false")
_GO_LINKER_FLAGS = "-s -w -buildid="
_GO_HINT = ("vendor/go.etcd.io/bbolt/bolt_unix.go", "\terr = unix.Madvise(b, syscall.MADV_RANDOM)\n")
"""Where bbolt asks for no readahead, whether its user wants that or not."""


def _debian(arch: Architecture, name: str, package: str, *flags: str) -> dict[str, Path]:
    """The driver of an engine in a Debian package's static archive; ``flags`` link the libraries that it needs."""
    fetched = apt.fetch(arch, (package,))
    (found,) = (each for each in fetched if each.file.name.startswith(f"{package}_"))

    def make(partial: Path) -> None:
        apt.unpack(found.file, partial)

    tree = made_once(_cache(package), digest([found.file.name, found.hash]), make)
    archive = f"{package.removesuffix('-dev')}.a"
    archives = list(tree.glob(f"usr/lib/*/{archive}"))
    if len(archives) != 1:
        raise BuildError(f"The Debian package {found.file.name} has no {archive}.")
    return _c_driver(arch, name, tree / "usr/include", archives[0], found.hash, flags)


def _mdbx(arch: Architecture) -> dict[str, Path]:
    source = _mdbx_source()
    compiler, version = process.compiler(arch)

    def make(partial: Path) -> None:
        with working(f"compiling libmdbx for {arch.name}"):
            argv = [compiler, *_MDBX_FLAGS, "-c", str(source / "mdbx.c"), "-o", str(partial / "mdbx.o")]
            process.run(argv, BuildError)

    key = digest([arch.name, version, *_MDBX_FLAGS, *_MDBX_HASHES.values()])
    built = made_once(_cache("libmdbx"), key, make)
    return _c_driver(arch, "mdbx", source, built / "mdbx.o", key)


def _bbolt(arch: Architecture) -> dict[str, Path]:
    compiler = process.tool("go")
    # No other version of Go than this one, and no workspace around our cache.
    env = os.environ | {
        "CGO_ENABLED": "0",
        "GOARCH": arch.debian,
        "GOFLAGS": "",
        "GOOS": "linux",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    version = process.run([compiler, "version"], BuildError, env=env)
    sources = _SOURCES / "bbolt"

    def make(partial: Path) -> None:
        tree = partial / "source"
        shutil.copytree(sources, tree)
        with working(f"fetching bbolt and compiling it for {arch.name}"):
            process.run([compiler, "mod", "download", *_GO_MODULES], LabError, cwd=tree, env=env)
            process.run([compiler, "mod", "vendor"], LabError, cwd=tree, env=env)
            _go_build(compiler, tree, partial / "bbolt", "own", env)
            _take_out(tree / _GO_HINT[0], _GO_HINT[1])
            _go_build(compiler, tree, partial / "bbolt-no-hint", "none", env)
        shutil.rmtree(tree)

    files = digest_files(sources.iterdir(), sources)
    key = digest([arch.name, version, *_GO_FLAGS, _GO_LINKER_FLAGS, *_GO_HINT, files])
    published = made_once(_cache("bbolt"), key, make)
    return {name: published / name for name in ("bbolt", "bbolt-no-hint")}


def _go_build(compiler: str, tree: Path, output: Path, hint: str, env: Mapping[str, str]) -> None:
    linker_flags = f"{_GO_LINKER_FLAGS} -X main.hint={hint}"
    argv = [compiler, "build", *_GO_FLAGS, "-ldflags", linker_flags, "-o", str(output.resolve()), "."]
    process.run(argv, BuildError, cwd=tree, env=env)


def _take_out(path: Path, words: str) -> None:
    """Take words out of a file that has them once."""
    text = path.read_text()
    if text.count(words) != 1:
        raise BuildError(f"{path.name} of bbolt has {words.strip()!r} {text.count(words)} times instead of once.")
    path.write_text(text.replace(words, ""))


DRIVERS: dict[str, Callable[[Architecture], dict[str, Path]]] = {
    "lmdb": lambda arch: _debian(arch, "lmdb", "liblmdb-dev"),
    "mdbx": _mdbx,
    "bbolt": _bbolt,
    "sqlite": lambda arch: _debian(arch, "sqlite", "libsqlite3-dev", "-lm", "-ldl"),
}
"""By store, what makes its drivers as static executables: name -> path. Cached by all that goes in.

The one of bbolt always gives bbolt's hint, and has a second one beside it that never does. They raise MissingTool,
BuildError, or whatever stops the fetching of the engine.
"""


def _cache(name: str) -> Path:
    return cache_directory() / "stores" / name


def _c_driver(
    arch: Architecture, name: str, include: Path, archive: Path, engine: str, flags: Sequence[str] = ()
) -> dict[str, Path]:
    """``engine`` is a hash of what the archive and its header come from."""
    compiler, version = process.compiler(arch)
    sources = [_SOURCES / "driver.h", _SOURCES / f"{name}.c"]

    def make(partial: Path) -> None:
        with working(f"compiling a driver for {name}"):
            argv = [compiler, *_FLAGS, f"-I{include}", "-o", str(partial / name), str(sources[1]), str(archive), *flags]
            process.run(argv, BuildError)

    key = digest([arch.name, version, *_FLAGS, *flags, engine, digest_files(sources, _SOURCES)])
    return {name: made_once(_cache(name), key, make) / name}


def _mdbx_source() -> Path:
    """The directory of libmdbx's C source, which a crate for Rust brings along."""

    def make(partial: Path) -> None:
        fetcher = cargo()
        (partial / "Cargo.toml").write_text(_MANIFEST)
        (partial / "nothing.rs").touch()
        with working(f"fetching the crate {_MDBX_CRATE} {_MDBX_VERSION}"):
            process.run([fetcher, "vendor", "--quiet"], LabError, cwd=partial)
        source = partial / "vendor" / _MDBX_CRATE / "libmdbx"
        _verify(source, _MDBX_HASHES)
        for name in _MDBX_HASHES:
            (source / name).rename(partial / name)
        shutil.rmtree(partial / "vendor")

    return made_once(_cache("libmdbx-source"), digest([_MDBX_VERSION, *_MDBX_HASHES.values()]), make)


def cargo() -> str:
    """What libmdbx is fetched with; MissingTool without it, or with one that is too old."""
    found = process.tool("cargo")
    words = process.run([found, "--version"], LabError).decode()
    version = re.match(r"cargo (\d+)\.(\d+)", words)
    if not version or (int(version[1]), int(version[2])) < _CARGO_VERSION:
        wanted = ".".join(map(str, _CARGO_VERSION))
        raise MissingTool(f"{words.strip()} cannot read the crate {_MDBX_CRATE}; cargo {wanted}, of Debian 13, can.")
    return found


def _verify(directory: Path, hashes: Mapping[str, str]) -> None:
    """BuildError unless these files have these SHA-256 hashes."""
    for name, expected in hashes.items():
        if sha256(directory / name) != expected:
            raise BuildError(f"{name} of the crate {_MDBX_CRATE} {_MDBX_VERSION} is not the file that is known.")

# SPDX-License-Identifier: GPL-2.0-only
"""The adaptive window as a module for kernels that Debian has built, and its Debian package for DKMS."""

import os
import re
import shutil
import tempfile
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.errors import BuildError, UsageError
from foliolab.files import KERNEL, MODULE, digest_files
from foliolab.kernel.debian_headers import built_module, copy_sources
from foliolab.process import run, tool

NAME = "mmap_readahead_window"
_POLICY = tuple(KERNEL / f"files/mm/mmap_readahead_window.{kind}" for kind in "ch")
"""What the kernel patches and the module have in common."""

_SOURCES, _RECIPES = (".c", ".h"), ("Kbuild", "Makefile", "dkms.conf")
"""Of the module's directory, without what make leaves there."""
_CALLERS = ("Makefile", "dkms.conf")
"""Which only ask the kernel's own make for it."""

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
    # DKMS's helper for packages builds for the running and the newest kernel; in a chroot, for all that are installed.
    "postinst": 'case $1 in configure) /usr/lib/dkms/common.postinst {name} {version} "" "" "${{2-}}" ;; esac',
    "prerm": "case $1 in remove | upgrade | deconfigure) dkms remove -m {name} -v {version} --all || true ;; esac",
}


def sources(directory: Path = MODULE) -> dict[str, Path]:
    """All that it is made of, with the policy: name in a directory that is complete by itself -> file."""
    there = (path for path in directory.iterdir() if path.suffix in _SOURCES or path.name in _RECIPES)
    own = {path.name: path for path in there if not path.name.endswith(".mod.c")}
    return own | {f"mm/{path.name}": path for path in _POLICY}


def code_hash(directory: Path = MODULE) -> str:
    """Over what is compiled, and how, as foliolab.kernel.code has it of a series."""
    return digest_files(path for path in sources(directory).values() if path.name not in _CALLERS)


def built(release: str, arch: Architecture) -> Path:
    """The module for the kernel of which ``uname -r`` prints ``release``; guests load it after all others."""
    return built_module(f"99-{NAME}.ko", sources(), code_hash(), release, arch)


def export(directory: Path) -> None:
    """Write the sources into ``directory``, complete, as DKMS wants them; UsageError if it exists."""
    if directory.exists():
        raise UsageError(f"{directory} exists already; name a new directory for the module's sources.")
    partial = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    copy_sources(sources(), partial)
    partial.rename(directory)


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
        # dpkg-deb clamps newer time stamps to this one.
        environment = os.environ | {"SOURCE_DATE_EPOCH": "0"}
        make = [tool("dpkg-deb"), "--root-owner-group", "-Zxz", "--build", str(tree), str(built)]
        run(make, BuildError, env=environment)
        built.rename(file)
    return file

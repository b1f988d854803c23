# SPDX-License-Identifier: GPL-2.0-only
"""A Debian package of the module's sources, of which DKMS builds it."""

import os
import re
import tempfile
from pathlib import Path

from foliolab.errors import BuildError, UsageError
from foliolab.files import MODULE
from foliolab.kernel.module import NAME, export
from foliolab.process import run, tool

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

# SPDX-License-Identifier: GPL-2.0-only
"""Packages of the module's sources, which have DKMS build them: Debian's, and RPM's with the same files."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foliolab.errors import BuildError, UsageError
from foliolab.kernel.debian_headers import copy_sources
from foliolab.kernel.module import NAME, name_and_version, sources
from foliolab.process import run, tool

PACKAGE = "foliolab-readahead-dkms"

_SUMMARY = "adaptive readahead of mapped files, as a kernel module"
_DESCRIPTION = f"""\
Reads of a mapped file what has paid in it so far, instead of a window of a
fixed size around each page that is touched. DKMS builds the module for each
kernel whose headers are installed; modprobe {NAME} loads it.
"""
_CONTROL = """\
Package: {package}
Version: {version}
Architecture: all
Section: kernel
Priority: optional
Maintainer: foliolab maintainers <maintainers@foliolab.invalid>
Depends: dkms
Description: {summary}
{description}"""
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
# DKMS has no helper there. Its option leaves a module registered whose package is installed again.
_SPEC = """\
Name: {package}
Version: {version}
Release: 1
Summary: {summary}
License: GPL-2.0-only
BuildArch: noarch
AutoReqProv: no
Requires: dkms
%description
{description}
%install
cp -a %{{tree}}/. %{{buildroot}}/
%files
%attr(-, root, root) /usr/src/{name}-{version}
%attr(-, root, root) /usr/share/doc/{package}
%post
dkms add -m {name} -v {version} --rpm_safe_upgrade && dkms install -m {name} -v {version} --force || :
%preun
dkms remove -m {name} -v {version} --all --rpm_safe_upgrade || :
"""
_ENVIRONMENT = {"SOURCE_DATE_EPOCH": "0"}
"""Makers of packages clamp newer time stamps to this one."""


def build_deb(directory: Path) -> Path:
    """Write Debian's package into ``directory``; the same sources make the same bytes.

    UsageError if there is no such directory.
    """
    name, version = name_and_version()
    with _tree(directory) as tree:
        _write(tree, "DEBIAN/control", _filled(_CONTROL, "".join(f" {line}\n" for line in _DESCRIPTION.splitlines())))
        for script, command in _SCRIPTS.items():
            text = f"#!/bin/sh\nset -e\n{command.format(name=name, version=version)}\n"
            _write(tree, f"DEBIAN/{script}", text, 0o755)
        argv = [tool("dpkg-deb"), "--root-owner-group", "-Zxz", "--build", str(tree), f"{tree}.deb"]
        run(argv, BuildError, env=os.environ | _ENVIRONMENT)
        return Path(f"{tree}.deb").rename(directory / f"{PACKAGE}_{version}_all.deb")


def build_rpm(directory: Path) -> Path:
    """Write RPM's package into ``directory``. UsageError if there is no such directory."""
    _, version = name_and_version()
    with _tree(directory) as tree:
        top = tree.parent
        _write(top, "module.spec", _filled(_SPEC, _DESCRIPTION))
        defined = {"_topdir": top, "_rpmdir": top, "tree": tree}
        words = [word for name, place in defined.items() for word in ("--define", f"{name} {place}")]
        argv = [tool("rpmbuild"), "-bb", "--target", "noarch", *words, str(top / "module.spec")]
        run(argv, BuildError, env=os.environ | _ENVIRONMENT)
        file = f"{PACKAGE}-{version}-1.noarch.rpm"
        return (top / "noarch" / file).rename(directory / file)


@contextmanager
def _tree(directory: Path) -> Iterator[Path]:
    """All files that a package puts on a machine, by their places there; it goes behind the block."""
    if not directory.is_dir():
        raise UsageError(f"There is no directory {directory} to put the package into.")
    name, version = name_and_version()
    with tempfile.TemporaryDirectory(dir=directory.absolute(), prefix=f".{PACKAGE}.") as scratch:
        tree = Path(scratch) / "tree"
        copy_sources(sources(), tree / f"usr/src/{name}-{version}")
        _write(tree, f"usr/share/doc/{PACKAGE}/copyright", _COPYRIGHT)
        for entry in (tree, *tree.rglob("*")):
            entry.chmod(0o755 if entry.is_dir() else 0o644)
        yield tree


def _filled(template: str, description: str) -> str:
    name, version = name_and_version()
    return template.format(package=PACKAGE, name=name, version=version, summary=_SUMMARY, description=description)


def _write(tree: Path, name: str, text: str, mode: int = 0o644) -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).parent.chmod(0o755)
    (tree / name).write_text(text)
    (tree / name).chmod(mode)

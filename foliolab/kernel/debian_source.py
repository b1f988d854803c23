# SPDX-License-Identifier: GPL-2.0-only
"""Kernel sources as Debian packages them, of any version that any suite has."""

import json
import re
from pathlib import Path

from foliolab.apt import Downloads, unpack
from foliolab.errors import SourceError
from foliolab.files import emptied, locked, write_atomic
from foliolab.kernel.name import BASE_VERSION
from foliolab.kernel.source import Source, sources, unpacked, version_of
from foliolab.progress import say, working

SUITES = (
    "",
    "trixie-backports",
    "trixie",
    "trixie-security",
    "sid",
    "forky",
    "bookworm-backports",
    "bookworm",
    "bookworm-security",
)
"""Where to look, in this order; first what this machine uses. By name: mirrors are slow to move "stable" on."""


def from_debian(version: str, *, newest: bool = False) -> Source:
    """The source of linux-source-``version``.

    What was fetched once stays the base until ``newest`` asks apt again, so that no upgrade changes measurements.
    """
    note = sources() / ("debian.json" if version == BASE_VERSION else f"debian-{version}.json")
    package = f"linux-source-{version}"
    with locked(note.with_suffix(".lock"), lambda: say(f"waiting for another process to fetch {package}")):
        if not newest and (found := _noted(note)):
            return found
        with emptied(note.with_suffix(".fetching")) as scratch:
            with working(f"Fetching Debian's {package}"):
                tarball = _fetch(package, scratch)
            source = unpacked(tarball)
        write_atomic(note, json.dumps({"home": source.home.name}))
    return source


def _noted(note: Path) -> Source | None:
    """What was fetched before."""
    if not note.exists():
        return None
    tree = sources() / json.loads(note.read_text())["home"] / "pristine"
    return Source(tree, version_of(tree), tree.parent.name) if tree.is_dir() else None


def _fetch(package: str, directory: Path) -> Path:
    with Downloads(directory, SUITES) as packages:
        file = packages.bring(re.escape(package), package)
    unpack(file, directory / "package")
    file.unlink()
    tarballs = list((directory / "package/usr/src").glob("linux-source-*.tar.*"))
    if not tarballs:
        raise SourceError(f"The package {package} holds no source tarball.")
    return tarballs[0]

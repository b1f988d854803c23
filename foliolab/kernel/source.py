# SPDX-License-Identifier: GPL-2.0-only
"""Pristine kernel trees in the cache: what all of them have, and those that come as tarballs."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from foliolab.errors import SourceError
from foliolab.files import cache_directory, emptied, locked, sha256
from foliolab.process import run, tool
from foliolab.progress import working


@dataclass(frozen=True)
class Source:
    """A pristine kernel tree that nobody writes to."""

    place: Path
    """Where the tree is once it was asked for."""
    version: str
    """As the top Makefile says it, for example "6.12.117"."""
    identity: str
    """Hash of what the tree was made from; same identity, same content."""

    @property
    def home(self) -> Path:
        """The cache directory for everything derived from this source."""
        return self.place.parent

    @cached_property
    def tree(self) -> Path:
        """The tree itself. Asking for one of git's takes it to ``place``, where another one was."""
        self._bring()
        return self.place

    def read(self, file: str) -> bytes | None:
        """The content of a file, or None if there is none."""
        path = self.tree / file
        return path.read_bytes() if path.is_file() else None

    def _bring(self) -> None:
        """It is there."""


def sources() -> Path:
    """Where the cache has all trees."""
    return cache_directory() / "sources"


def version_of(tree: Path) -> str:
    """The version in a kernel tree's top Makefile; SourceError if it is none."""
    try:
        makefile = (tree / "Makefile").read_text()
    except OSError:
        raise SourceError(f"{tree} is not a kernel tree: it has no Makefile.") from None
    return version_in(makefile, str(tree))


def version_in(makefile: str, place: str) -> str:
    """The version that a top Makefile names; SourceError says that ``place`` has none."""
    fields = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", makefile[:500], re.MULTILINE))
    if len(fields) != 3:
        raise SourceError(f"{place} is not a kernel tree: its Makefile names no version.")
    return "{VERSION}.{PATCHLEVEL}.{SUBLEVEL}".format(**fields)


def unpacked(tarball: Path) -> Source:
    """The tree in a tarball, which is unpacked once."""
    identity = sha256(tarball)[:16]
    home = sources() / identity
    pristine = home / "pristine"
    with locked(sources() / f"{identity}.lock"):
        if not pristine.is_dir():
            with working(f"Unpacking {tarball.name}"), emptied(home / "unpacking") as scratch:
                argv = [tool("tar"), "--extract", "--file", str(tarball), "--directory", str(scratch)]
                try:
                    run(argv, SourceError)
                except SourceError as error:
                    reason = str(error).rpartition("tar: ")[2]
                    raise SourceError(f"{tarball} is no tarball of a kernel: {reason}.") from None
                trees = [entry for entry in scratch.iterdir() if entry.is_dir()]
                if len(trees) != 1:
                    raise SourceError(f"{tarball} does not hold exactly one directory, as kernel tarballs do.")
                version_of(trees[0])
                trees[0].rename(pristine)
    return Source(pristine, version_of(pristine), identity)

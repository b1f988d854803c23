# SPDX-License-Identifier: GPL-2.0-only
"""From a kernel's name to the tree it is built from, in the cache."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foliolab.errors import SourceError, UsageError
from foliolab.files import digest, full_disk_named, locked
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.git_source import Repository, is_git_tree
from foliolab.kernel.name import KernelName
from foliolab.kernel.source import Source, sources, unpacked, version_of
from foliolab.process import run, tool
from foliolab.progress import say, working


@contextmanager
def held(name: KernelName, *, newest: bool = False) -> Iterator[Source]:
    """The tree that a name says, without its series; nobody else changes it before the end of the block.

    One tree in the cache follows the user's, from ref to ref or edit to edit. What is built from it has to be
    built before it changes again, or objects would be newer than the sources that they are not made from.
    """
    if name.image:
        raise UsageError(f"{name.text} is a kernel that Debian has built, and has no source here.")
    if name.debian:
        yield from_debian(name.debian, newest=newest)
    elif name.path.is_file():
        yield unpacked(name.path)
    else:
        repository = Repository.at(name.path) if name.ref or is_git_tree(name.path) else None
        home = repository.home if repository else sources() / f"tree-{digest([str(name.path)])}"
        with locked(home / "lock", lambda: say(f"Another build of {name.path} is running; waiting for it.")):
            without = ", without what is not committed" if name.ref and repository and repository.has_changes() else ""
            with full_disk_named(home), working(f"Looking at {name.path}{without}"):
                source = repository.source(name.ref) if repository else _mirrored(name.path, home / "pristine")
            yield source


def _mirrored(tree: Path, pristine: Path) -> Source:
    """Mirror the user's tree, so that it is neither written to nor changed under a running build."""
    version_of(tree)
    pristine.mkdir(parents=True, exist_ok=True)
    run(
        # Not the user's time stamps: a file that went back to an older one must be newer than its object.
        [tool("rsync"), "-rlp", "--checksum", "--delete", "--exclude=/.git", "--exclude=*.o",
         "--exclude=/.config", f"{tree}/", f"{pristine}/"],
        SourceError,
    )  # fmt: skip
    # Names, sizes and times, as rsync itself compares: reading 1.4 GB would take longer than it is worth.
    listing = [
        f"{path.relative_to(pristine)} {path.lstat().st_size} {path.lstat().st_mtime_ns}"
        for path in sorted(pristine.rglob("*"))
        if not path.is_dir()
    ]
    return Source(pristine, version_of(pristine), digest(listing))

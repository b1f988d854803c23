# SPDX-License-Identifier: GPL-2.0-only
"""From a kernel's name to the tree it is built from, in the cache."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from foliolab.errors import DirtyTree, SourceError, UnknownKernel, UsageError
from foliolab.files import digest, full_disk_named, locked, write_atomic
from foliolab.kernel.debian import from_debian
from foliolab.kernel.git import Repository, is_git_tree
from foliolab.kernel.name import BASE_VERSION, KernelName
from foliolab.kernel.tarball import Source, sources, unpacked, version_of
from foliolab.process import run, tool
from foliolab.progress import Reporter

__all__ = ["Source", "commit_of", "copied", "held", "obtain", "working_tree"]


def obtain(report: Reporter) -> Source:
    """The tree that our series is made for, Debian's package, which stays as it is."""
    return from_debian(BASE_VERSION, report)


@contextmanager
def held(name: KernelName, report: Reporter, *, newest: bool = False) -> Iterator[Source]:
    """The tree that a name says, without its series; nobody else changes it before the end of the block.

    One tree in the cache follows the user's, from ref to ref or edit to edit. What is built from it has to be
    built before it changes again, or objects would be newer than the sources that they are not made from.
    """
    if fixed := _fixed(name, report, newest=newest):
        yield fixed
        return
    home = Repository.at(name.path).home if _in_git(name) else sources() / f"tree-{digest([str(name.path)])}"
    with locked(home / "lock", lambda: report.say(f"Another build of {name.path} is running; waiting for it.")):
        yield _followed(name, home, report)


def copied(name: KernelName, home: Path, report: Reporter, *, newest: bool = False) -> Source:
    """The same for who builds nothing, and so waits for no build: what has to be copied is copied to ``home``.

    That is an empty directory of the caller's.
    """
    return _fixed(name, report, newest=newest) or _followed(name, home, report)


def _fixed(name: KernelName, report: Reporter, *, newest: bool) -> Source | None:
    """A source that does not change once it is in the cache; None for the user's trees."""
    if name.image:
        raise UsageError(f"{name.text} is a kernel that Debian has built, and has no source here.")
    if name.debian:
        return from_debian(name.debian, report, newest=newest)
    return unpacked(name.path, report) if name.path.is_file() else None


def _followed(name: KernelName, home: Path, report: Reporter) -> Source:
    """The user's tree, of which the copy in ``home`` is brought to what it is now."""
    repository = Repository.at(name.path, home) if _in_git(name) else None
    without = ", without what is not committed" if name.ref and repository and repository.has_changes() else ""
    with full_disk_named(home), report.task(f"Looking at {name.path}{without}"):
        return repository.source(name.ref, report) if repository else _mirrored(name.path, home / "pristine")


def _in_git(name: KernelName) -> bool:
    return bool(name.ref) or is_git_tree(name.path)


def commit_of(name: KernelName, source: Source) -> str:
    """The commit that ``source`` is, as a name says it; nothing if it is none. DirtyTree if it has changes on top."""
    if name.debian or name.path.is_file() or not _in_git(name):
        return ""
    repository = Repository.at(name.path)
    try:
        commit = repository.commit(name.ref or "HEAD")
    except UnknownKernel:  # a tree, or the first commit is yet to be made
        return ""
    if repository.identity(commit) != source.identity:
        raise DirtyTree(
            f"{name.path} has changes that are not committed, so that no commit is its base; commit them, or write "
            f"{name.path}@HEAD to leave them out."
        )
    return commit


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


def working_tree(source: Source, label: str, changed: Mapping[str, bytes | None]) -> Path:
    """Bring the tree of this label to ``changed`` over the pristine files, and return it.

    A file whose content is None is not there. The caller holds the lock of all that use this label.

    Kernels are built from these trees, which are kept beside the pristine one: each label has its own, so that make
    never takes another one's files for new. They share unchanged files with the pristine
    tree by hard links. A file that a series changed once stays a file of its own: whenever its content changes, also
    back to the pristine one, it is written anew, with a new time stamp, so that make rebuilds what depends on it and
    nothing else.
    """
    tree = source.home / f"work-{label}"
    manifest = source.home / f"work-{label}.json"
    own = set(changed) | set(json.loads(manifest.read_text()) if manifest.exists() else [])
    # Recorded before the first write: a kill in between must not leave a change that nobody knows of.
    write_atomic(manifest, json.dumps(sorted(own)))
    with full_disk_named(tree):
        _share_all_but(own, source.tree, tree)
        for file in own:
            pristine, place = source.tree / file, tree / file
            content = changed.get(file, pristine.read_bytes() if pristine.exists() else None)
            if content is None:
                place.unlink(missing_ok=True)
            elif not place.exists() or place.read_bytes() != content:
                write_atomic(place, content)
                place.chmod(pristine.stat().st_mode & 0o777 if pristine.exists() else 0o644)
    return tree


def _share_all_but(own: set[str], pristine: Path, tree: Path) -> None:
    tree.mkdir(parents=True, exist_ok=True)
    run(
        [tool("rsync"), "-a", "--delete", "--exclude-from=-", f"--link-dest={pristine}",
         f"{pristine}/", f"{tree}/"],
        SourceError,
        stdin="".join(f"/{file}\n" for file in sorted(own)).encode(),
    )  # fmt: skip

# SPDX-License-Identifier: GPL-2.0-only
"""Kernel trees in git: any commit, or the tree as it stands, without a copy of the repository.

One tree in the cache follows all refs and working trees of a repository. git itself brings it from one to
the next and writes only the files that differ, so that make builds again what depends on these. A kernel that
the cache has is found without that, or what the tree goes back to would be built a second time.
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from foliolab.errors import SourceError, UnknownKernel
from foliolab.files import digest, full_disk_named
from foliolab.kernel.source import Source, sources, version_in
from foliolab.process import git
from foliolab.progress import working


def is_git_tree(tree: Path) -> bool:
    """Whether a directory is the top of a working tree."""
    return (tree / ".git").exists()


@dataclass(frozen=True)
class Repository:
    """A user's repository, of which nothing is changed: what has to be written is written in the cache."""

    place: Path
    """A working tree of it, or a bare one."""
    directory: Path
    common: Path
    """The directory that all its working trees share."""
    home: Path
    """In the cache, for all that is derived from it."""

    @classmethod
    def at(cls, place: Path) -> "Repository":
        """The repository whose top is ``place``; UnknownKernel if there is none."""
        words = ("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir")
        try:
            found = git(UnknownKernel, *words, place=place, alone=False)
        except UnknownKernel as error:
            raise UnknownKernel(f"{place} is not a git tree, so there are no refs in it. ({error})") from None
        directory, common = map(Path, found.decode().splitlines())
        return cls(place, directory, common, sources() / f"git-{digest([str(common)])}")

    def source(self, ref: str) -> Source:
        """The tree of a ref, or without one the working tree as it stands, which comes into the cache if it is wanted.

        As it stands means with all that is not ignored, committed or not. Who wants that, or the tree of the source,
        holds the lock of ``home``, as long as it uses the source.
        """
        tree = self.tree(ref) if ref else self._as_it_stands()
        try:
            version = version_in(self._git("show", f"{tree}:Makefile"), str(self.place))
        except SourceError:
            raise SourceError(f"{self.place} is not a kernel tree: it has no Makefile that names a version.") from None
        return _GitSource(self.home / "pristine", version, tree[:16], self, tree)

    def check_out(self, tree: str, place: Path) -> None:
        """Bring ``place`` to a tree."""
        place.mkdir(exist_ok=True)
        (self.home / "index.lock").unlink(missing_ok=True)  # what a kill has left
        self._git("read-tree", "--reset", "-u", tree, work_tree=place)
        self._git("clean", "-ffdqx", work_tree=place)  # what a kill between two refs has left

    def file(self, tree: str, file: str) -> bytes | None:
        """The content of a file in a tree, or None if there is none."""
        if not self._git("ls-tree", "--full-tree", tree, "--", file).startswith("100"):  # a directory, or nothing
            return None
        return self._output("cat-file", "blob", f"{tree}:{file}")

    def tree(self, ref: str) -> str:
        """The tree that a ref names; UnknownKernel if it names none."""
        return self._resolved(ref, "tree")

    def commit(self, ref: str) -> str:
        """The commit that a ref names; UnknownKernel if it names none."""
        commit = self._resolved(ref, "commit")
        if not commit.isalnum():  # a range, or what is to be left out of one
            raise UnknownKernel(f"'{ref}' names no single commit.")
        return commit

    def has_changes(self) -> bool:
        """Whether the working tree has what is not committed, and not ignored."""
        if not is_git_tree(self.place):  # a bare repository, or a place within one
            return False
        command = ("--no-optional-locks", "status", "--porcelain", "--untracked-files=normal")
        return bool(self._git(*command, work_tree=self.place, index=self.directory / "index"))

    def _resolved(self, ref: str, kind: str) -> str:
        try:
            return self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{{kind}}}").strip()
        except SourceError:
            raise UnknownKernel(f"{self.place} has no ref '{ref}'.") from None

    def _as_it_stands(self) -> str:
        index = self.home / "standing"
        index.with_suffix(".lock").unlink(missing_ok=True)  # what a kill has left
        if (self.directory / "index").exists():  # it knows which files are as they were
            # With its time, by which git knows which files may have changed after it was written.
            shutil.copy2(self.directory / "index", index)
        self._git("add", "--all", work_tree=self.place, index=index)
        return self._git("write-tree", index=index).strip()

    def _git(self, *arguments: str, work_tree: Path | None = None, index: Path | None = None) -> str:
        return self._output(*arguments, work_tree=work_tree, index=index).decode(errors="replace")

    def _output(self, *arguments: str, work_tree: Path | None = None, index: Path | None = None) -> bytes:
        settings = [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "core.autocrlf=false",
            "core.sparseCheckout=false",
        ]
        if work_tree != self.place:
            # Links to our own files change their ctime: all of the tree would be written anew, and so compiled.
            settings.append("core.trustCtime=false")
        options = [word for setting in settings for word in ("-c", setting)]
        objects = self.home / "objects"
        objects.mkdir(parents=True, exist_ok=True)
        places = {
            "DIR": self.directory,
            "INDEX_FILE": index or self.home / "index",
            "OBJECT_DIRECTORY": objects,
            "ALTERNATE_OBJECT_DIRECTORIES": self.common / "objects",
            **({"WORK_TREE": work_tree} if work_tree else {}),
        }
        named = {name: str(place) for name, place in places.items()}
        return git(SourceError, *options, *arguments, place=work_tree, settings=named, alone=False)


@dataclass(frozen=True)
class _GitSource(Source):
    """A tree of git's, which is not in the cache before it is asked for."""

    repository: Repository = field(compare=False)
    object: str
    """By which git knows it."""

    def read(self, file: str) -> bytes | None:
        return self.repository.file(self.object, file)

    def _bring(self) -> None:
        with full_disk_named(self.home), working(f"Taking the files of {self.repository.place}"):
            self.repository.check_out(self.object, self.place)

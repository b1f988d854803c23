# SPDX-License-Identifier: GPL-2.0-only
"""Changes on top of a tree: ours, as new files and the hooks that call them from existing ones, and the user's."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import HookError, SeriesError
from foliolab.files import KERNEL
from foliolab.kernel.config import numbers
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.git_source import Repository
from foliolab.kernel.name import BASE_VERSION, OURS, expanded, parse_name
from foliolab.kernel.source import Source
from foliolab.process import git, tool


@dataclass(frozen=True)
class Feature:
    """One commit of the series: a patch, and the new files that come with it.

    kernel/files has files as all of the series leaves them. What the patch changes in its own files fits them to
    a kernel. What it changes in files of earlier commits is its share of these: there already, but in the commits
    before it.
    """

    patch: Path
    files: tuple[str, ...]
    """Paths below kernel/files, which are their paths in the kernel tree."""

    @property
    def topic(self) -> str:
        return _topic(self.patch)


def _topic(patch: Path) -> str:
    """What a patch is about: its name before the first dash."""
    return patch.stem.partition("-")[0]


def topics(kernel: Path = KERNEL) -> list[str]:
    """Of all patches of all our series."""
    return sorted({_topic(patch) for patch in (kernel / "patches").glob("*/*.patch")})


def bases(kernel: Path = KERNEL) -> tuple[str, ...]:
    """The versions of Linux that our series is made for, oldest first."""
    return tuple(sorted((place.parent.name for place in (kernel / "patches").glob("*/series")), key=numbers))


def ported(version: str, kernel: Path = KERNEL) -> Path:
    """The directory of our series for Linux ``version``: that of the newest base that is no newer."""
    fitting = [base for base in bases(kernel) if numbers(base) <= numbers(version)]
    if not fitting:
        raise HookError(f"Our series is made for Linux {' and '.join(bases(kernel))}, and not for {version}.")
    return kernel / "patches" / fitting[-1]


def read_series(version: str = BASE_VERSION, kernel: Path = KERNEL) -> tuple[Feature, ...]:
    """The features for Linux ``version`` in order; those for BASE_VERSION have all of kernel/files."""
    series = ported(version, kernel) / "series"
    lines = [line.partition("#")[0].split() for line in series.read_text().splitlines()]
    features = [Feature(series.parent / patch, tuple(files)) for patch, *files in filter(None, lines)]
    claimed = [file for feature in features for file in feature.files]
    present = {str(path.relative_to(kernel / "files")) for path in (kernel / "files").rglob("*") if path.is_file()}
    for feature in features:
        if not feature.patch.is_file():
            raise HookError(f"{series} names {feature.patch.name}, which is not there.")
    for file in sorted(set(claimed) - present):
        raise HookError(f"{file} is not in kernel/files but in {series}.")
    if (stray := present - set(claimed)) and series.parent.name == BASE_VERSION:
        raise HookError(f"{min(stray)} is in no line of {series}.")
    if doubles := {file for file in claimed if claimed.count(file) > 1}:
        raise HookError(f"{series} names {sorted(doubles)[0]} twice.")
    return tuple(features)


def check_names(texts: Iterable[str]) -> None:
    """Raise what is wrong with the names of several kernels before the first is built, which takes minutes.

    A series has to apply to a source of Debian's, which is fetched once all refs are there.
    """
    names = [parse_name(text) for text in texts]
    for name in names:
        if name.ref:
            Repository.at(name.path).tree(name.ref)
    for name in names:
        if name.debian and name.series:
            applied(from_debian(name.debian), name.series)


def applied(source: Source, series: Sequence[str]) -> dict[str, bytes | None]:
    """What the series of a kernel's name make of the pristine tree: path and content of every file; None: gone.

    Raises HookError for ours, and SeriesError for another one, if it does not apply.
    """
    with tempfile.TemporaryDirectory(prefix="foliolab-hooks-") as name:
        scratch = _Scratch(source, Path(name), set())
        for each in series:
            if each == OURS:
                scratch.apply_features(read_series(source.version), KERNEL)
            else:
                scratch.apply_mail(expanded(each).resolve())
        return scratch.content()


def parts_of(changed: Mapping[str, bytes | None]) -> list[bytes | str]:
    """What ``applied`` has returned, for a hash."""
    return [part for file, content in changed.items() for part in (file, b"\0gone" if content is None else content)]


def commits(source: Source, features: tuple[Feature, ...], kernel: Path = KERNEL) -> list[dict[str, bytes]]:
    """For each feature in turn, what the files that it brings or changes are after it: path and content.

    Raises HookError if a hook does not apply, or if features do not lead back to the pristine tree.
    """
    with tempfile.TemporaryDirectory(prefix="foliolab-hooks-") as name:
        scratch = _Scratch(source, Path(name), set())
        scratch.apply_features(features, kernel)
        contents = []
        for feature in reversed(features):
            contents.append(scratch.read({*feature.files, *diffs(feature.patch)}))
            scratch.take_back(feature)
        scratch.check_pristine()
        return contents[::-1]


@dataclass(frozen=True)
class _Scratch:
    """Those files of a tree that series change."""

    source: Source
    place: Path
    touched: set[str]

    def content(self) -> dict[str, bytes | None]:
        files = {file: self.place / file for file in sorted(self.touched)}
        return {file: path.read_bytes() if path.exists() else None for file, path in files.items()}

    def read(self, files: set[str]) -> dict[str, bytes]:
        return {file: (self.place / file).read_bytes() for file in sorted(files)}

    def apply_features(self, features: tuple[Feature, ...], kernel: Path) -> None:
        """Make the finished tree."""
        finished: set[str] = set()
        for feature in features:
            for file in feature.files:
                (self.place / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(kernel / "files" / file, self.place / file)
            self.touched.update(feature.files)
            hooks = {file: diff for file, diff in diffs(feature.patch).items() if file not in finished}
            for file in hooks:
                if not self._take(file):
                    raise HookError(f"{feature.patch.name} changes {file}, which Linux {self.source.version} has not.")
            self._patch(feature, "".join(hooks.values()))
            finished.update(feature.files)

    def take_back(self, feature: Feature) -> None:
        """Go from the tree with a feature, and no later one, to the tree before it."""
        self._patch(feature, "".join(diffs(feature.patch).values()), "--reverse")
        for file in feature.files:
            (self.place / file).unlink()

    def check_pristine(self) -> None:
        for file in sorted(self.touched):
            place = self.place / file
            if place.exists() and place.read_bytes() != self.source.read(file):
                raise HookError(f"The series for Linux {self.source.version} cannot be taken back from {file}.")

    def apply_mail(self, patches: Path) -> None:
        """Apply a patch, or all of a mailbox, as git makes them."""
        words = patches.read_text(errors="replace")
        files = re.findall(r"^(?:--- a/|\+\+\+ b/|rename (?:from|to) )(\S+)", words, re.MULTILINE)
        if not files:
            raise SeriesError(f"{patches} holds no patch.")
        for file in files:
            self._take(file)
        # Inside of some other repository git would pass over all files.
        settings = {"CEILING_DIRECTORIES": str(self.place.parent)}
        try:
            git(SeriesError, "apply", str(patches), place=self.place, settings=settings)
        except SeriesError as error:
            reason = str(error).partition("error: ")[2] or str(error)
            raise SeriesError(f"{patches} does not apply to Linux {self.source.version}: {reason}.") from None

    def _patch(self, feature: Feature, diff: str, *options: str) -> None:
        """Apply hooks; HookError names the first hunk that fails."""
        if not diff:
            return
        done = subprocess.run(
            [tool("patch"), "--strip=1", "--force", "--no-backup-if-mismatch", "--input=-", *options],
            cwd=self.place,
            input=diff,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return
        what = f"{feature.patch.name} does not apply to Linux {self.source.version}"
        file = "?"
        for line in done.stdout.splitlines():
            if match := re.match(r"patching file (\S+)", line):
                file = match[1]
            if match := re.match(r"Hunk #(\d+) FAILED at (\d+)", line):
                raise HookError(f"{what}: hunk {match[1]} of {file} (near line {match[2]}) finds other code there.")
        words = (done.stdout + done.stderr).strip().splitlines()
        raise HookError(f"{what}: {words[-1] if words else 'patch gave no reason'}")

    def _take(self, file: str) -> bool:
        """Have a file here that is to be changed; False if there is none."""
        place = self.place / file
        if file not in self.touched and (pristine := self.source.read(file)) is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(pristine)
        self.touched.add(file)
        return place.is_file()


@dataclass(frozen=True)
class Mail:
    """What a patch of the series says besides its hooks."""

    author: str
    """As "Name <address>"."""
    date: str
    subject: str
    message: str
    """The changelog, ending in a line feed."""
    diff: str

    def __str__(self) -> str:
        head = f"From: {self.author}\nDate: {self.date}\nSubject: [PATCH] {self.subject}\n\n"
        return f"{head}{self.message}---\n{self.diff}"


def read_mail(patch: Path) -> Mail:
    """A patch of ours; HookError if it is not of the form in which they are kept."""
    form = r"From: (.*)\nDate: (.*)\nSubject: \[PATCH\] (.*)\n\n((?:.*\n)*?)---\n((?:.*\n)*)"
    if not (match := re.fullmatch(form, patch.read_text())):
        raise HookError(f"{patch} has no From, Date and Subject, changelog, line of three dashes and hooks.")
    return Mail(*match.groups())


def diffs(patch: Path) -> dict[str, str]:
    """What a patch changes: path and diff of each file."""
    parts = re.split(r"^(?=--- a/\S+\n\+\+\+ b/)", read_mail(patch).diff, flags=re.MULTILINE)[1:]
    return {part.split(maxsplit=2)[1].removeprefix("a/"): part for part in parts}

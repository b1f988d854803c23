# SPDX-License-Identifier: GPL-2.0-only
"""Changes on top of a tree: ours, as new files and the hooks that call them from existing ones, and the user's."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import HookError, SeriesError
from foliolab.kernel.config import numbers
from foliolab.kernel.name import BASE_VERSION, OURS
from foliolab.kernel.source import Source
from foliolab.paths import KERNEL
from foliolab.process import run, tool


@dataclass(frozen=True)
class Feature:
    """One patch of the series, and the new files that come with it, which it may fit to a kernel."""

    patch: Path
    files: tuple[str, ...]
    """Paths below kernel/files, which are their paths in the kernel tree."""


def ported(version: str, kernel: Path = KERNEL) -> Path:
    """The directory of our series for Linux ``version``: that of the newest base that is no newer."""
    bases = {numbers(place.parent.name): place.parent for place in (kernel / "patches").glob("*/series")}
    fitting = [base for base in bases if base <= numbers(version)]
    if not fitting:
        names = " and ".join(place.name for _, place in sorted(bases.items()))
        raise HookError(f"Our series is made for Linux {names}, and not for {version}.")
    return bases[max(fitting)]


def read_series(version: str = BASE_VERSION, kernel: Path = KERNEL) -> tuple[Feature, ...]:
    """The features for Linux ``version`` in order; those for BASE_VERSION have all of kernel/files."""
    series = ported(version, kernel) / "series"
    features = _features(series)
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


def _features(series: Path) -> list[Feature]:
    features = []
    for line in series.read_text().splitlines():
        match line.partition("#")[0].split():
            case [patch, *files]:
                features.append(Feature(series.parent / patch, tuple(files)))
    return features


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
                scratch.apply_mail(Path(each).expanduser().resolve())
        return scratch.content()


def changed_files(source: Source, features: tuple[Feature, ...], kernel: Path = KERNEL) -> dict[str, bytes]:
    """Path and content of every file in which the tree with our series differs from the pristine one.

    Raises HookError, naming patch, file and hunk, for a hook that does not apply.
    """
    with tempfile.TemporaryDirectory(prefix="foliolab-hooks-") as name:
        scratch = _Scratch(source, Path(name), set())
        scratch.apply_features(features, kernel)
        return {file: content for file, content in scratch.content().items() if content is not None}


@dataclass(frozen=True)
class _Scratch:
    """Those files of a tree that series change."""

    source: Source
    place: Path
    touched: set[str]

    def content(self) -> dict[str, bytes | None]:
        files = {file: self.place / file for file in sorted(self.touched)}
        return {file: path.read_bytes() if path.exists() else None for file, path in files.items()}

    def apply_features(self, features: tuple[Feature, ...], kernel: Path) -> None:
        for feature in features:
            for file in sorted(patched_files(feature.patch)):
                if not self._take(file) and file not in feature.files:
                    raise HookError(f"{feature.patch.name} changes {file}, which Linux {self.source.version} has not.")
            self.touched.update(feature.files)
            apply_feature(feature, self.place, self.source.version, kernel)

    def apply_mail(self, patches: Path) -> None:
        """Apply a patch, or all of a mailbox, as git makes them."""
        words = patches.read_text(errors="replace")
        files = re.findall(r"^(?:--- a/|\+\+\+ b/|rename (?:from|to) )(\S+)", words, re.MULTILINE)
        if not files:
            raise SeriesError(f"{patches} holds no patch.")
        for file in files:
            self._take(file)
        # Inside of some other repository git would pass over all files.
        environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(self.place.parent)}
        try:
            run([tool("git", "git"), "apply", str(patches)], SeriesError, cwd=self.place, env=environment)
        except SeriesError as error:
            reason = str(error).partition("error: ")[2] or str(error)
            raise SeriesError(f"{patches} does not apply to Linux {self.source.version}: {reason}.") from None

    def _take(self, file: str) -> bool:
        """Have a file here that is to be changed; False if there is none."""
        place, pristine = self.place / file, self.source.tree / file
        if file not in self.touched and pristine.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(pristine, place)
        self.touched.add(file)
        return place.is_file()


def patched_files(patch: Path) -> set[str]:
    """The existing files that a patch changes."""
    return set(re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE))


def apply_feature(feature: Feature, tree: Path, version: str, kernel: Path = KERNEL) -> None:
    """Put the files of a feature into ``tree``, then apply its patch, which may change them as well."""
    for file in feature.files:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(kernel / "files" / file, tree / file)
    apply_patch(feature.patch, tree, version)


def apply_patch(patch: Path, tree: Path, version: str) -> None:
    """Apply a hook to ``tree``; HookError names the first hunk that fails."""
    done = subprocess.run(
        [tool("patch", "patch"), "--strip=1", "--force", "--no-backup-if-mismatch", "--input", str(patch)],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return
    file = "?"
    for line in done.stdout.splitlines():
        if match := re.match(r"patching file (\S+)", line):
            file = match[1]
        if match := re.match(r"Hunk #(\d+) FAILED at (\d+)", line):
            raise HookError(
                f"{patch.name} does not apply to Linux {version}: hunk {match[1]} of {file} (near line {match[2]}) "
                "finds other code there."
            )
    words = (done.stdout + done.stderr).strip().splitlines()
    raise HookError(f"{patch.name} does not apply to Linux {version}: {words[-1] if words else 'patch gave no reason'}")

# SPDX-License-Identifier: GPL-2.0-only
"""``kernel import``: a branch of ours, rebased or edited, back in kernel/patches and kernel/files."""

import difflib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from foliolab.errors import LabError, SeriesError
from foliolab.files import KERNEL, write_atomic
from foliolab.kernel.git_source import Repository
from foliolab.kernel.name import BASE_VERSION
from foliolab.kernel.series import Feature, Mail, bases, commits, ported, read_mail, read_series
from foliolab.kernel.source import Source
from foliolab.process import git

_REACH = 4
"""So many times as many commits as the series has are looked at for the first one of ours."""


@dataclass
class _Commit:
    """One of ours in the branch."""

    feature: Feature
    message: str
    brought: list[str] = field(default_factory=list)
    """New files."""
    hooks: dict[str, str] = field(default_factory=dict)
    """Path and diff of each file that it changes."""
    after: dict[str, bytes] = field(default_factory=dict)
    """Path and content of all of these, after it."""


def take_over(repository: Repository, tip: str, kernel: Path = KERNEL) -> list[Path]:
    """Have kernel/patches and kernel/files say what the commits of ours up to ``tip`` do; returns what was written.

    They are known by their subjects. Nothing is written unless what is to be written makes the same commits. Raises
    SeriesError for a branch that is no series of ours, UnknownKernel and SourceError for what is no kernel in git.
    """
    version = repository.source(tip).version
    features = read_series(version, kernel)
    place = repository.place
    run_of = _ours(place, tip, {read_mail(feature.patch).subject: feature for feature in features})
    branch = [_read(place, commit, feature) for commit, feature in run_of]
    base = repository.source(f"{run_of[0][0]}^")
    wanted = _wanted(branch, base, features, kernel)
    with tempfile.TemporaryDirectory(prefix="foliolab-import-") as name:
        made = Path(name)
        for part in ("patches", "files"):
            if (kernel / part).is_dir():  # the first steps bring no files
                shutil.copytree(kernel / part, made / part)
        _put(wanted, made)
        if commits(base, read_series(version, made), made) != [commit.after for commit in branch]:
            raise SeriesError("What would be written does not make the commits of the branch.")
        for other in bases(made):
            read_series(other, made)
    return _put(wanted, kernel)


def _ours(place: Path, tip: str, known: dict[str, Feature]) -> list[tuple[str, Feature]]:
    """The commits from the first one of ours to ``tip``, with what they are commits of."""
    most = f"--max-count={_REACH * len(known)}"
    log = _git(place, "log", "--first-parent", most, "--format=%H %P%x00%s", tip, "--").splitlines()
    lines = [line.split("\0") for line in log]
    while lines and lines[-1][1] not in known:
        lines.pop()
    if not lines:
        raise SeriesError(f"{tip} in {place} has no commit of ours among its last ones.")
    result: dict[str, str] = {}
    for hashes, subject in reversed(lines):
        commit, *parents = hashes.split()
        if subject not in known:
            raise SeriesError(f"Commit {commit[:12]}, '{subject}', is none of the series.")
        if len(parents) != 1:
            raise SeriesError(f"Commit {commit[:12]}, '{subject}', has no single parent.")
        if subject in result:
            raise SeriesError(f"Two commits are called '{subject}'.")
        result[subject] = commit
    if missing := [subject for subject in known if subject not in result]:
        raise SeriesError(f"The branch has no commit '{missing[0]}'.")
    return [(commit, known[subject]) for subject, commit in result.items()]


def _read(place: Path, commit: str, feature: Feature) -> _Commit:
    found = _Commit(feature, _git(place, "log", "--max-count=1", "--format=%b", commit))
    raw = _git(place, "diff-tree", "-r", "-z", "--no-commit-id", "--no-renames", commit).split("\0")[:-1]
    for facts, file in zip(raw[::2], raw[1::2], strict=True):
        old_mode, new_mode, _, _, status = facts[1:].split()
        if (status, old_mode, new_mode) == ("A", "000000", "100644"):
            found.brought.append(file)
        elif status == "M" and old_mode == new_mode:
            diff = _git(place, "diff-tree", "-p", "--no-commit-id", "--no-renames", commit, "--", file)
            found.hooks[file] = diff[diff.index("--- a/") :]
        else:
            raise SeriesError(f"Commit {commit[:12]} removes {file} or changes its mode, which patches here cannot.")
        found.after[file] = git(SeriesError, "show", f"{commit}:{file}", place=place)
    found.after = dict(sorted(found.after.items()))
    return found


def _wanted(
    branch: list[_Commit], source: Source, features: tuple[Feature, ...], kernel: Path
) -> dict[str, bytes | None]:
    """What files below ``kernel`` are to be: path and content; None: gone.

    A patch that makes the same commit already stays as it is.
    """
    patches = ported(source.version, kernel)
    finished = {file: content for commit in branch for file, content in commit.after.items()}
    wanted: dict[str, bytes | None] = {}
    if patches.name == BASE_VERSION:
        wanted.update({f"files/{file}": None for feature in features for file in feature.files})
        wanted.update({f"files/{file}": finished[file] for commit in branch for file in commit.brought})
    try:
        olds = dict(zip(features, _changes(commits(source, features, kernel), source), strict=True))
    except LabError:  # the base has moved: each hook is made anew
        olds = {}
    series = (patches / "series").read_text().splitlines()
    lines = [line for line in series if not line.partition("#")[0].split()]
    for commit, change in zip(branch, _changes((commit.after for commit in branch), source), strict=True):
        feature = commit.feature
        mail = read_mail(feature.patch)
        diff = mail.diff
        if olds.get(feature) != change:
            hooks = commit.hooks | _fits(commit.brought, wanted, finished, kernel)
            diff = "".join(text for _, text in sorted(hooks.items()))
        text = str(Mail(mail.author, mail.date, mail.subject, _message(commit.message), diff))
        wanted[f"patches/{patches.name}/{feature.patch.name}"] = text.encode()
        kept = [file for file in feature.files if file in commit.brought]
        lines.append(" ".join([feature.patch.name, *kept, *sorted({*commit.brought} - {*kept})]))
    wanted[f"patches/{patches.name}/series"] = "".join(f"{line}\n" for line in lines).encode()
    return wanted


def _changes(contents: Iterable[dict[str, bytes]], source: Source) -> Iterator[dict[str, tuple[bytes | None, bytes]]]:
    """What each of a row of commits changes: path, and content before and after it."""
    state: dict[str, bytes] = {}
    for content in contents:
        yield {file: (state[file] if file in state else source.read(file), after) for file, after in content.items()}
        state |= content


def _fits(
    brought: list[str], wanted: dict[str, bytes | None], finished: dict[str, bytes], kernel: Path
) -> dict[str, str]:
    """What a kernel needs otherwise of the files that another one has as well."""
    result = {}
    for file in brought:
        place = kernel / "files" / file
        ours = wanted.get(f"files/{file}") or (place.read_bytes() if place.exists() else b"")
        old, new = (text.decode().splitlines(keepends=True) for text in (ours, finished[file]))
        if diff := "".join(difflib.unified_diff(old, new, f"a/{file}", f"b/{file}")):
            result[file] = diff
    return result


def _message(body: str) -> str:
    """A changelog without who signed it off, which is of the branch, not of the series."""
    return re.sub(r"^Signed-off-by: .*\n?", "", body, flags=re.MULTILINE).strip() + "\n"


def _put(wanted: dict[str, bytes | None], kernel: Path) -> list[Path]:
    """Have files below ``kernel`` be as wanted; returns those that were not."""
    written = []
    for name, content in sorted(wanted.items()):
        file = kernel / name
        if content == (file.read_bytes() if file.exists() else None):
            continue
        if content is None:
            file.unlink()
        else:
            write_atomic(file, content)
        written.append(file)
    return written


def _git(place: Path, *arguments: str) -> str:
    return git(SeriesError, *arguments, place=place).decode(errors="replace")

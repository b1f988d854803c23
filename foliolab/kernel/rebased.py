# SPDX-License-Identifier: GPL-2.0-only
"""A branch of ours, rebased or edited, back in kernel/patches and kernel/files."""

import difflib
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from foliolab.errors import LabError, SeriesError
from foliolab.files import KERNEL, write_atomic
from foliolab.kernel.name import BASE_VERSION
from foliolab.kernel.series import Feature, Mail, commits, diffs, ported, read_mail, read_series
from foliolab.kernel.tarball import Source, version_in
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
    before: dict[str, bytes] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)
    """Path and content of all of these, but for new ones before it."""


def take_over(place: Path, tip: str, kernel: Path = KERNEL) -> list[Path]:
    """Have kernel/patches and kernel/files say what the commits of ours up to ``tip`` do; returns what was written.

    They are known by their subjects. Nothing is written unless what is to be written makes the same commits. Raises
    SeriesError for a branch that is no series of ours, UnknownKernel and SourceError for what is no kernel in git.
    """
    version = version_in(_git(place, "show", f"{tip}:Makefile"), f"{place} at {tip}")
    features = read_series(version, kernel)
    run_of = _ours(place, tip, {read_mail(feature.patch).subject: feature for feature in features})
    branch = [_read(place, commit, feature) for commit, feature in run_of]
    base = f"{run_of[0][0]}^"
    with tempfile.TemporaryDirectory(prefix="foliolab-import-") as name:
        scratch = Path(name)
        touched = {file for commit in branch for file in commit.hooks}
        touched.update(file for feature in features for file in diffs(feature.patch))
        source = _files_of(place, base, touched, scratch / "pristine", version)
        made = scratch / "kernel"
        for part in ("patches", "files"):
            if (kernel / part).is_dir():  # the first steps bring no files
                shutil.copytree(kernel / part, made / part)
        _write(branch, source, features, made)
        again = commits(source, read_series(version, made), made)
        if again != [commit.after for commit in branch]:
            raise SeriesError("What would be written does not make the commits of the branch.")
        for other in (made / "patches").iterdir():
            read_series(other.name, made)
        return _taken(made, kernel)


@contextmanager
def applied_mail(mbox: Path, source: Source) -> Iterator[Path]:
    """A repository with what a mailbox makes of the files of ``source`` that it changes; goes with the block."""
    files = set(re.findall(r"^--- a/(\S+)", mbox.read_text(errors="replace"), re.MULTILINE))
    with tempfile.TemporaryDirectory(prefix="foliolab-mail-") as name:
        place = Path(name)
        for file in sorted({"Makefile", ".gitattributes", *files}):
            if (content := source.read(file)) is not None:
                write_atomic(place / file, content)
        _git(place, "init", "--quiet")
        _git(place, "add", "--all", "--force")
        _git(place, "commit", "--quiet", "--message", f"Linux {source.version}")
        try:
            _git(place, "am", "--quiet", "--empty=drop", str(mbox.resolve()))
        except SeriesError as error:
            reason = str(error).partition("' failed: ")[2]
            raise SeriesError(f"{mbox} does not apply to Linux {source.version}: {reason}") from None
        yield place


def _ours(place: Path, tip: str, known: dict[str, Feature]) -> list[tuple[str, Feature]]:
    """The commits from the first one of ours to ``tip``, with what they are commits of."""
    most = f"--max-count={_REACH * len(known)}"
    log = _git(place, "log", "--first-parent", most, "--format=%H %P%x00%s", tip, "--").splitlines()
    lines = [line.split("\0") for line in log]
    if not any(subject in known for _, subject in lines):
        raise SeriesError(f"{tip} in {place} has no commit of ours among its last ones.")
    while lines[-1][1] not in known:
        lines.pop()
    result: list[tuple[str, Feature]] = []
    for hashes, subject in reversed(lines):
        commit, *parents = hashes.split()
        if subject not in known:
            raise SeriesError(f"Commit {commit[:12]}, '{subject}', is none of the series.")
        if len(parents) != 1:
            raise SeriesError(f"Commit {commit[:12]}, '{subject}', has no single parent.")
        if known[subject] in [feature for _, feature in result]:
            raise SeriesError(f"Two commits are called '{subject}'.")
        result.append((commit, known[subject]))
    for subject, feature in known.items():
        if feature not in [found for _, found in result]:
            raise SeriesError(f"The branch has no commit '{subject}'.")
    return result


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
            found.before[file] = _output(place, "show", f"{commit}^:{file}")
        else:
            raise SeriesError(f"Commit {commit[:12]} removes {file} or changes its mode, which patches here cannot.")
        found.after[file] = _output(place, "show", f"{commit}:{file}")
    found.after = dict(sorted(found.after.items()))
    return found


def _write(branch: list[_Commit], source: Source, features: tuple[Feature, ...], kernel: Path) -> None:
    """Bring a copy of ``kernel`` to the branch. What makes the same commit already stays as it is."""
    series = ported(source.version, kernel) / "series"
    finished = {file: content for commit in branch for file, content in commit.after.items()}
    brought = {file for commit in branch for file in commit.brought}
    files = kernel / "files"
    try:
        olds = dict(zip(features, commits(source, features, kernel), strict=True))
    except LabError:  # the base has moved: each hook is made anew
        olds = {}
    state: dict[str, bytes] = {}
    befores = {}
    for feature in features:
        after = olds.get(feature, {})
        befores[feature] = {file: state[file] if file in state else source.read(file) or b"" for file in after}
        state |= after
    if series.parent.name == BASE_VERSION:
        for file in {file for feature in features for file in feature.files} - brought:
            (files / file).unlink()
        for file in brought:
            write_atomic(files / file, finished[file])
    lines = [line for line in series.read_text().splitlines() if not line.partition("#")[0].split()]
    for commit in branch:
        old = commit.feature
        mail = read_mail(kernel / "patches" / series.parent.name / old.patch.name)
        message = _message(commit.message)
        patch = series.parent / old.patch.name
        same = olds.get(old) == commit.after and all(befores[old][file] == commit.before[file] for file in commit.hooks)
        if not same or mail.message != message:
            hooks = commit.hooks | _fits(commit.brought, files, finished)
            text = mail.diff if same else "".join(diff for _, diff in sorted(hooks.items()))
            write_atomic(patch, str(Mail(mail.author, mail.date, mail.subject, message, text)))
        kept = [file for file in old.files if file in commit.brought]
        added = sorted(set(commit.brought) - set(kept))
        lines.append(" ".join([old.patch.name, *kept, *added]))
    if (text := "".join(f"{line}\n" for line in lines)) != series.read_text():
        write_atomic(series, text)


def _fits(brought: list[str], files: Path, finished: dict[str, bytes]) -> dict[str, str]:
    """What a kernel needs otherwise of the files that another one has as well."""
    result = {}
    for file in brought:
        ours = (files / file).read_text() if (files / file).exists() else ""
        lines = ours.splitlines(keepends=True), finished[file].decode().splitlines(keepends=True)
        if diff := "".join(difflib.unified_diff(*lines, f"a/{file}", f"b/{file}")):
            result[file] = diff
    return result


def _message(body: str) -> str:
    """A changelog without who signed it off, which is of the export, not of the series."""
    return re.sub(r"^Signed-off-by: .*\n?", "", body, flags=re.MULTILINE).strip() + "\n"


def _files_of(place: Path, commit: str, files: set[str], tree: Path, version: str) -> Source:
    """Those of some files that a commit has, in ``tree``."""
    present = _git(place, "ls-tree", "-r", "-z", "--name-only", commit, "--", *sorted(files)).split("\0")[:-1]
    for file in present:
        write_atomic(tree / file, _output(place, "show", f"{commit}:{file}"))
    return Source(tree, version, commit)


def _taken(made: Path, kernel: Path) -> list[Path]:
    """Write what differs."""
    written = []
    for part in ("patches", "files"):
        names = {
            str(path.relative_to(root))
            for root in (made, kernel)
            for path in (root / part).rglob("*")
            if path.is_file()
        }
        for name in sorted(names):
            new, old = made / name, kernel / name
            if not new.exists():
                old.unlink()
            elif not old.exists() or old.read_bytes() != new.read_bytes():
                write_atomic(old, new.read_bytes())
            else:
                continue
            written.append(old)
    return written


def _git(place: Path, *arguments: str) -> str:
    return _output(place, *arguments).decode(errors="replace")


def _output(place: Path, *arguments: str) -> bytes:
    # Somebody has to commit what mail says.
    identity = {f"{who}_{what}": "foliolab" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return git(SeriesError, *arguments, place=place, settings=identity)

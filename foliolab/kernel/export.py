# SPDX-License-Identifier: GPL-2.0-only
"""The series as kernel developers take it: a git branch, an mbox, and a cover letter."""

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import LabError, UsageError
from foliolab.files import KERNEL, full_disk_named, write_atomic
from foliolab.kernel.series import Feature, Mail, commits, diffs, read_mail, read_series
from foliolab.kernel.source import Source
from foliolab.kernel.without import without
from foliolab.process import git, run, tool
from foliolab.progress import Reporter

BRANCH = "foliolab"
SUBJECT = "mm: read of mapped files what programs use"

_BASE_AUTHOR = "Linux <linux@foliolab.invalid>"


@dataclass(frozen=True)
class Export:
    repository: Path
    """A git repository: the pristine tree, and BRANCH on it, a commit for each feature."""
    mbox: Path
    letter: Path


def checked_author(author: str) -> str:
    """``author`` if it is of the form "Name <address>"; UsageError otherwise."""
    if not re.fullmatch(r"[^<>@\s][^<>@\n]* <[^<>@\s]+@[^<>@\s]+>", author):
        raise UsageError(f"'{author}' is no author; write \"Name <name@example.org>\".")
    return author


def export(
    source: Source, directory: Path, report: Reporter, *, words: str = "", author: str = "", base: str = ""
) -> Export:
    """Write repository, mbox and letter to ``directory``, which must not exist; nothing is left of a failed export.

    ``words`` is the text of the letter, and ``base`` the commit that the source is. With an ``author``, all commits
    are theirs, and signed off by them; without, nobody has signed off anything.
    """
    if directory.exists():
        raise UsageError(f"{directory} exists already; choose another place for the export.")
    features = read_series(source.version)
    contents = commits(source, features)
    try:
        with full_disk_named(directory):
            repository = directory / "linux"
            repository.mkdir(parents=True)
            with report.task(f"Committing the pristine Linux {source.version}"):
                run([tool("rsync"), "-a", "--exclude=/.git", f"{source.tree}/", f"{repository}/"], LabError)
                _begin(repository, source.version)
            _commit_features(repository, features, contents, author)
            mbox, letter = directory / f"{BRANCH}.mbox", directory / "0000-cover-letter.patch"
            sender = author or read_mail(features[0].patch).author
            cover, *patches = _mails(repository, source.version, sender, "--cover-letter", "--thread=shallow")
            end = f"\nbase-commit: {base}\n" if base else ""
            cover = cover.replace("*** SUBJECT HERE ***", SUBJECT).replace("*** BLURB HERE ***\n", words)
            write_atomic(letter, cover.rstrip() + "\n" + end)
            write_atomic(mbox, patches[0] + end + "".join(patches[1:]))
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return Export(repository, mbox, letter)


def mailbox(source: Source, features: tuple[Feature, ...], kernel: Path = KERNEL, left_out: Sequence[str] = ()) -> str:
    """The features as one mbox that git takes on ``source``, signed off by nobody.

    Those whose patches are called as in ``left_out`` are not in it. The text depends on nothing but ``source``,
    ``kernel`` and the version of git.
    """
    contents = commits(source, features, kernel)
    if left_out:
        touched = {file for content in contents for file in content}
        pristine = {file: content for file in sorted(touched) if (content := source.read(file)) is not None}
        out = {number for number, feature in enumerate(features) if feature.patch.name in left_out}
        contents = without(contents, pristine, out)
        features = tuple(feature for feature in features if feature.patch.name not in left_out)
    with tempfile.TemporaryDirectory(prefix="foliolab-mailbox-") as name:
        repository = Path(name)
        for file in sorted({"Makefile", ".gitattributes"}.union(*(diffs(feature.patch) for feature in features))):
            if (source.tree / file).exists():
                (repository / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source.tree / file, repository / file)  # with its mode, which the mails name
        _begin(repository, source.version)
        _commit_features(repository, features, contents)
        first, *others = _mails(repository, source.version, _BASE_AUTHOR, "--zero-commit", "--abbrev=12")
    return f"{first}\nbase: Linux {source.version}\n" + "".join(others)


def _mails(repository: Path, version: str, sender: str, *options: str) -> list[str]:
    """The commits of BRANCH as git's mails, one text each, the letter first if ``options`` want one."""
    command = (*_identity(sender), "format-patch", "--stdout", "--no-signature", *options)
    mails = _git(repository, *command, f"v{version}..{BRANCH}").decode()
    return re.split(r"^(?=From [0-9a-f]{40} Mon Sep 17 )", mails, flags=re.MULTILINE)[1:]


def _begin(repository: Path, version: str) -> None:
    """Commit the files that are there as the pristine tree, and begin BRANCH on it."""
    _git(repository, "init", "--quiet", f"--initial-branch=v{version}")
    # -f: the kernel's .gitignore would leave out files that the tarball has.
    _git(repository, "-c", "core.compression=0", "add", "--all", "--force")
    _commit(repository, Mail(_BASE_AUTHOR, "2024-11-17T00:00:00Z", f"Linux {version}", "", ""), signed=False)
    _git(repository, "switch", "--quiet", "--create", BRANCH)


def _commit_features(
    repository: Path, features: Sequence[Feature], contents: Sequence[dict[str, bytes]], author: str = ""
) -> None:
    """A commit for each feature, of what files are after it."""
    for feature, content in zip(features, contents, strict=True):
        for file, text in content.items():
            (repository / file).parent.mkdir(parents=True, exist_ok=True)
            (repository / file).write_bytes(text)
        _git(repository, "add", "--force", *content)
        mail = read_mail(feature.patch)
        if author:
            mail = Mail(author, mail.date, mail.subject, mail.message, "")
        _commit(repository, mail, signed=bool(author))


def _commit(repository: Path, mail: Mail, *, signed: bool) -> None:
    options = ("--quiet", f"--date={mail.date}", *(["--signoff"] if signed else []), "--file=-")
    words = f"{mail.subject}\n\n{mail.message}".encode()
    settings = {"COMMITTER_DATE": mail.date}
    git(LabError, *_identity(mail.author), "commit", *options, place=repository, settings=settings, stdin=words)


def _identity(author: str) -> tuple[str, ...]:
    """Options by which git takes us for the author."""
    name, _, address = author.rstrip(">").partition(" <")
    return "-c", f"user.name={name}", "-c", f"user.email={address}"


def _git(repository: Path, *arguments: str) -> bytes:
    return git(LabError, *arguments, place=repository)

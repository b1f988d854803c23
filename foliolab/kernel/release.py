# SPDX-License-Identifier: GPL-2.0-only
"""The mailboxes in release/, by which git takes our changes without the lab."""

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import LabError
from foliolab.files import FIRST_STEPS, KERNEL, RELEASE, write_atomic
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.series import Feature, Mail, bases, commits, diffs, read_mail, read_series
from foliolab.kernel.source import Source
from foliolab.kernel.without import without
from foliolab.process import git

_BASE_AUTHOR = "Linux <linux@foliolab.invalid>"
_BASE_DATE = "2024-11-17T00:00:00Z"


@dataclass(frozen=True)
class Mailbox:
    """A file of release/, and what it is made of."""

    name: str
    version: str
    kernel: Path
    """The directory with the patches, and with the files that come with them."""
    left_out: tuple[str, ...] = ()
    """Patches of the series that are not in it."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """What is in it."""
        return tuple(feature for feature in self._all if feature.patch.name not in self.left_out)

    @property
    def _all(self) -> tuple[Feature, ...]:
        return read_series(self.version, self.kernel)

    def made(self, source: Source) -> str:
        """Its text, as it is to be for the patches of now: mails that git takes on ``source``, signed off by nobody.

        The text depends on nothing but ``source``, ``kernel`` and the version of git.
        """
        contents = commits(source, self._all, self.kernel)
        if self.left_out:
            touched = {file for content in contents for file in content}
            pristine = {file: content for file in sorted(touched) if (content := source.read(file)) is not None}
            out = {number for number, feature in enumerate(self._all) if feature.patch.name in self.left_out}
            contents = without(contents, pristine, out)
        with tempfile.TemporaryDirectory(prefix="foliolab-mailbox-") as name:
            first, *others = _mails(Path(name), source, self.features, contents)
        return f"{first}\nbase: Linux {source.version}\n" + "".join(others)


def mailboxes() -> Iterator[Mailbox]:
    """All of them: for each version of Linux the series, that without mprotect, and the first steps for mainline."""
    for version in bases():
        yield Mailbox(f"{version}.mbox", version, KERNEL)
        patches = (feature.patch.name for feature in read_series(version))
        mprotect = tuple(patch for patch in patches if patch.startswith("mprotect-"))
        yield Mailbox(f"{version}-without-mprotect.mbox", version, KERNEL, mprotect)
    for version in bases(FIRST_STEPS):
        yield Mailbox(f"first-steps-{version}.mbox", version, FIRST_STEPS)


def release() -> list[Path]:
    """Make all mailboxes; returns the files that were not as they are to be."""
    written = []
    for each in mailboxes():
        text, file = each.made(from_debian(each.version)), RELEASE / each.name
        if not file.exists() or file.read_text() != text:
            write_atomic(file, text)
            written.append(file)
    return written


def _mails(
    repository: Path, source: Source, features: Sequence[Feature], contents: Sequence[dict[str, bytes]]
) -> list[str]:
    """A mail for each feature, as git writes them of commits in ``repository``, which is empty.

    ``contents`` is what files are after each feature.
    """
    for file in sorted({"Makefile", ".gitattributes"}.union(*(diffs(feature.patch) for feature in features))):
        if (source.tree / file).exists():
            (repository / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source.tree / file, repository / file)  # with its mode, which the mails name
    git(LabError, "init", "--quiet", place=repository)
    _commit(repository, Mail(_BASE_AUTHOR, _BASE_DATE, f"Linux {source.version}", "", ""))
    for feature, content in zip(features, contents, strict=True):
        for file, text in content.items():
            (repository / file).parent.mkdir(parents=True, exist_ok=True)
            (repository / file).write_bytes(text)
        _commit(repository, read_mail(feature.patch))
    options = ("--stdout", "--no-signature", "--zero-commit", "--abbrev=12", f"-{len(features)}")
    mails = git(LabError, *_identity(_BASE_AUTHOR), "format-patch", *options, place=repository).decode()
    return re.split(r"^(?=From 0{40} Mon Sep 17 )", mails, flags=re.MULTILINE)[1:]


def _commit(repository: Path, mail: Mail) -> None:
    """Commit all that is there, with the words of a mail."""
    git(LabError, "add", "--all", "--force", place=repository)
    words = f"{mail.subject}\n\n{mail.message}".encode()
    command = (*_identity(mail.author), "commit", "--quiet", f"--date={mail.date}", "--file=-")
    git(LabError, *command, place=repository, settings={"COMMITTER_DATE": mail.date}, stdin=words)


def _identity(author: str) -> tuple[str, ...]:
    """Options by which git takes us for the author."""
    name, _, address = author.rstrip(">").partition(" <")
    return "-c", f"user.name={name}", "-c", f"user.email={address}"

# SPDX-License-Identifier: GPL-2.0-only
"""The series as kernel developers take it: a git branch and an mbox."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import LabError, UsageError
from foliolab.files import full_disk_named, write_atomic
from foliolab.kernel.series import Feature, apply_feature, patched_files, read_series
from foliolab.kernel.source import Source
from foliolab.process import run, tool
from foliolab.progress import Reporter

BRANCH = "foliolab"

_BASE_AUTHOR = "Linux <linux@foliolab.invalid>"


@dataclass(frozen=True)
class Export:
    repository: Path
    """A git repository: the pristine tree, and our branch on it, a commit for each feature."""
    branch: str
    mbox: Path


def export(source: Source, directory: Path, report: Reporter) -> Export:
    """Write repository and mbox to ``directory``, which must not exist; nothing is left of a failed export."""
    if directory.exists():
        raise UsageError(f"{directory} exists already; choose another place for the export.")
    features = read_series(source.version)
    try:
        with full_disk_named(directory):
            repository = directory / "linux"
            repository.mkdir(parents=True)
            with report.task(f"Committing the pristine Linux {source.version}"):
                _git(repository, "init", "--quiet", f"--initial-branch=v{source.version}")
                run([tool("rsync", "rsync"), "-a", "--exclude=/.git", f"{source.tree}/", f"{repository}/"], LabError)
                # -f: the kernel's .gitignore would leave out files that the tarball has.
                _git(repository, "-c", "core.compression=0", "add", "--all", "--force")
                _commit(repository, _BASE_AUTHOR, f"Linux {source.version}", "2024-11-17T00:00:00Z")
                _git(repository, "switch", "--quiet", "--create", BRANCH)
            for feature in features:
                _commit_feature(repository, feature, source)
            mbox = directory / f"{BRANCH}.mbox"
            patches = _git(repository, "format-patch", "--stdout", "--no-signature", f"v{source.version}..{BRANCH}")
            write_atomic(mbox, patches)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return Export(repository, BRANCH, mbox)


def _commit_feature(repository: Path, feature: Feature, source: Source) -> None:
    apply_feature(feature, repository, source.version)
    _git(repository, "add", "--force", *sorted(patched_files(feature.patch)), *feature.files)
    head = feature.patch.read_text().partition("\n---\n")[0]
    fields = dict(re.findall(r"^(From|Date|Subject): (.*)$", head, re.MULTILINE))
    subject = re.sub(r"^\[PATCH[^]]*\] ", "", fields["Subject"])
    body = head.partition("\n\n")[2]
    _commit(repository, fields["From"], f"{subject}\n\n{body}", fields["Date"])


def _commit(repository: Path, author: str, message: str, date: str) -> None:
    name, _, address = author.rstrip(">").partition(" <")
    run(
        [tool("git", "git"), "-c", f"user.name={name}", "-c", f"user.email={address}", "commit", "--quiet",
         f"--date={date}", "--file=-"],
        LabError,
        cwd=repository,
        stdin=message.encode(),
        env=_environment() | {"GIT_COMMITTER_DATE": date},
    )  # fmt: skip


def _git(repository: Path, *arguments: str) -> bytes:
    return run([tool("git", "git"), *arguments], LabError, cwd=repository, env=_environment())


def _environment() -> dict[str, str]:
    """Without the user's hooks, signatures and repository, which are not for ours."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return inherited | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

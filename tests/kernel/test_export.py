# SPDX-License-Identifier: GPL-2.0-only
import subprocess
from pathlib import Path

import pytest

from foliolab.errors import UsageError
from foliolab.kernel.export import export
from foliolab.kernel.series import changed_files, read_series
from foliolab.kernel.source import Source
from foliolab.progress import Reporter


def git(place: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@invalid"]
    return subprocess.run(["git", *identity, *arguments], cwd=place, check=True, capture_output=True, text=True).stdout


def test_mbox_applies_to_the_pristine_tree_and_equals_the_branch(small_source: Source, tmp_path: Path) -> None:
    exported = export(small_source, tmp_path / "out", Reporter())
    features = read_series()
    base = f"v{small_source.version}"
    assert git(exported.repository, "rev-list", "--count", f"{base}..{exported.branch}") == f"{len(features)}\n"
    git(exported.repository, "switch", "--quiet", "--create", "again", base)
    git(exported.repository, "am", "--quiet", str(exported.mbox))
    assert git(exported.repository, "diff", exported.branch, "again") == ""
    for file, content in changed_files(small_source, features).items():
        assert (exported.repository / file).read_bytes() == content


def test_changelog_and_author_are_kept(small_source: Source, tmp_path: Path) -> None:
    exported = export(small_source, tmp_path / "out", Reporter())
    log = git(exported.repository, "log", "-1", "--format=%an%n%s%n%b", "--grep=fault proves", exported.branch)
    assert log.startswith("foliolab developers\nmm/filemap: count as mmap hit only what a fault proves\n")
    assert log.rstrip().endswith("Signed-off-by: foliolab developers <developers@foliolab.invalid>")


def test_existing_directory_is_left_alone(small_source: Source, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("")
    with pytest.raises(UsageError, match="exists already"):
        export(small_source, tmp_path, Reporter())
    assert (tmp_path / "precious").exists()

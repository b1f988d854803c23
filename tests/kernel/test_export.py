# SPDX-License-Identifier: GPL-2.0-only
import re
import subprocess
import sys
from pathlib import Path

import pytest

from foliolab.errors import UsageError
from foliolab.kernel.debian import from_debian
from foliolab.kernel.export import BRANCH, Export, checked_author, export
from foliolab.kernel.name import OURS
from foliolab.kernel.series import applied, read_series
from foliolab.kernel.source import Source
from foliolab.progress import Reporter
from tests.conftest import BASES, reduced
from tests.git import git

AUTHOR = "Ann Other <ann@example.org>"
BASE = "0123456789abcdef0123456789abcdef01234567"


def test_mbox_applies_to_the_pristine_tree_and_equals_the_branch(small_source: Source, tmp_path: Path) -> None:
    exported = export(small_source, tmp_path / "out", Reporter())
    features = read_series()
    base = f"v{small_source.version}"
    assert git(exported.repository, "rev-list", "--count", f"{base}..{BRANCH}") == f"{len(features)}\n"
    git(exported.repository, "switch", "--quiet", "--create", "again", base)
    git(exported.repository, "am", "--quiet", str(exported.mbox))
    assert git(exported.repository, "diff", BRANCH, "again") == ""
    for file, content in applied(small_source, [OURS]).items():
        assert (exported.repository / file).read_bytes() == content


def test_nobody_signs_off_without_an_author(small_source: Source, tmp_path: Path) -> None:
    exported = export(small_source, tmp_path / "out", Reporter())
    log = git(exported.repository, "log", "-1", "--format=%an <%ae>%n%s%n%b", "--grep=fault proves", BRANCH)
    author, subject, body = log.split("\n", 2)
    assert author.endswith(".invalid>")
    assert subject == "mm/filemap: count as mmap hit only what a fault proves"
    assert "hits that prove nothing" in body.replace("\n", " ")
    assert "Signed-off-by" not in exported.mbox.read_text() + exported.letter.read_text()


@pytest.fixture
def sent(small_source: Source, tmp_path: Path) -> Export:
    """An export by somebody, of a commit."""
    return export(small_source, tmp_path / "out", Reporter(), words="What it is for.\n", author=AUTHOR, base=BASE)


def test_an_author_signs_off_all_commits(sent: Export) -> None:
    log = git(sent.repository, "log", "--format=%an <%ae>%x00%cn <%ce>%x00%(trailers:key=Signed-off-by)%x01")
    commits = [tuple(field.strip() for field in commit.split("\0")) for commit in log.split("\1")[:-2]]
    assert commits == [(AUTHOR, AUTHOR, f"Signed-off-by: {AUTHOR}")] * len(read_series())


def test_the_letter_has_words_subjects_diffstat_and_base(sent: Export) -> None:
    letter = sent.letter.read_text()
    assert re.search(rf"^Subject: \[PATCH 0+/{len(read_series())}\] mm: ", letter, re.MULTILINE)
    assert "***" not in letter
    assert "\nWhat it is for.\n" in letter
    assert "  mm/filemap: count as mmap hit only what a fault proves\n" in letter
    assert re.search(r"^ mm/filemap\.c +\| +\d+ [+-]+$", letter, re.MULTILINE)
    assert letter.endswith(f"\nbase-commit: {BASE}\n")


@pytest.mark.boot
@pytest.mark.parametrize("verb", ["am", "shazam"])
@pytest.mark.parametrize("version", BASES)
def test_b4_takes_the_mbox(version: str, verb: str, tmp_path: Path) -> None:
    source = reduced(from_debian(version, Reporter()), tmp_path / "small/pristine")
    sent = export(source, tmp_path / "out", Reporter(), words="What it is for.\n", author=AUTHOR, base=BASE)
    first = git(sent.repository, "rev-list", "--max-parents=0", "HEAD").strip()
    git(sent.repository, "switch", "--quiet", "--create", "again", first)
    git(sent.repository, "config", "user.name", "t")
    git(sent.repository, "config", "user.email", "t@invalid")
    b4 = Path(sys.executable).with_name("b4")
    output = ["-o", str(tmp_path / "am")] if verb == "am" else []
    command = [str(b4), "--offline-mode", "--no-interactive", verb, "-m", str(sent.mbox), *output]
    done = subprocess.run(
        command, cwd=sent.repository, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"Total patches: {len(read_series(version))}" in done.stderr + done.stdout
    if verb == "am":
        [ready] = (tmp_path / "am").glob("*.mbx")
        git(sent.repository, "am", "--quiet", str(ready))
    assert git(sent.repository, "diff", BRANCH, "again") == ""


@pytest.mark.parametrize("author", ["", "ann", "ann@example.org", "<ann@example.org>", "Ann <ann>", "A <a@b>\n"])
def test_an_author_of_another_form(author: str) -> None:
    with pytest.raises(UsageError, match=r"write \"Name <name@example\.org>\""):
        checked_author(author)


def test_existing_directory_is_left_alone(small_source: Source, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("")
    with pytest.raises(UsageError, match="exists already"):
        export(small_source, tmp_path, Reporter())
    assert (tmp_path / "precious").exists()

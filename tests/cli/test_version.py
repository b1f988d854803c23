# SPDX-License-Identifier: GPL-2.0-only
"""What './lab --version' tells."""

import re
import shutil
from pathlib import Path

from foliolab.cli.version import described
from foliolab.files import REPOSITORY
from foliolab.kernel.code import code_hash
from foliolab.kernel.series import bases
from tests.cli.command import lab
from tests.git import git


def test_it_tells_number_commit_and_code_and_ends() -> None:
    done = lab("--version")
    assert (done.returncode, done.stderr) == (0, "")
    number, commit, *codes = done.stdout.splitlines()
    assert re.fullmatch(r"foliolab \d+\.\d+\.\d+", number)
    assert commit.split()[1] == git(REPOSITORY, "rev-parse", "--short=12", "HEAD").strip()
    assert codes == [f"kernel {base} {code_hash(base)}" for base in bases()]


def test_changes_and_archives(tmp_path: Path) -> None:
    shutil.copyfile(REPOSITORY / "pyproject.toml", tmp_path / "pyproject.toml")
    assert "\ncommit unknown\n" in described(tmp_path)
    git(tmp_path, "init", "--quiet")
    assert "\ncommit unknown\n" in described(tmp_path)
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message=one")
    assert re.search(r"\ncommit [0-9a-f]{12}\n", described(tmp_path))
    (tmp_path / "new").write_text("")
    assert re.search(r"\ncommit [0-9a-f]{12} with changes\n", described(tmp_path))


def test_the_newest_changes_are_of_this_version() -> None:
    newest = re.findall(r"^## (\S+)", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert f"foliolab {newest}\n" in described()

# SPDX-License-Identifier: GPL-2.0-only
"""The real command, as far as it comes without LTP's source, which no package has."""

from pathlib import Path

from foliolab.errors import SourceError
from tests.cli.command import lab, sentence
from tests.git import git


def test_a_tree_that_is_none_of_ltp_ends_in_a_sentence(tmp_path: Path) -> None:
    done = lab("kselftest", "--suite", "ltp", "--source", str(tmp_path))
    assert done.returncode == SourceError.status
    assert sentence(done).startswith(f"{tmp_path} is no git tree of LTP")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message=Empty")
    done = lab("kselftest", "--suite", "ltp", "--source", str(tmp_path))
    assert done.returncode == SourceError.status
    assert "runtest/mm" in sentence(done)

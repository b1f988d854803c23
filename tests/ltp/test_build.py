# SPDX-License-Identifier: GPL-2.0-only
"""The real command, as far as it comes without LTP's source, which no package has."""

import subprocess
from pathlib import Path

from foliolab.errors import SourceError
from tests.cli.command import lab, sentence


def test_a_tree_that_is_none_of_ltp_ends_in_a_sentence(tmp_path: Path) -> None:
    done = lab("ltp", "--source", str(tmp_path))
    assert done.returncode == SourceError.status
    assert sentence(done).startswith(f"{tmp_path} is no git tree of LTP")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message=Empty"], check=True)
    done = lab("ltp", "--source", str(tmp_path))
    assert done.returncode == SourceError.status
    assert "runtest/mm" in sentence(done)

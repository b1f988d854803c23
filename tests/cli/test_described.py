# SPDX-License-Identifier: GPL-2.0-only
"""What the lab tells of itself."""

import re
import shutil
import subprocess
from pathlib import Path

from foliohost.errors import INTERRUPTED
from foliolab import errors
from foliolab.cli.described import version
from foliolab.errors import LabError
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
    assert "\ncommit unknown\n" in version(tmp_path)
    git(tmp_path, "init", "--quiet")
    assert "\ncommit unknown\n" in version(tmp_path)
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message=one")
    assert re.search(r"\ncommit [0-9a-f]{12}\n", version(tmp_path))
    (tmp_path / "new").write_text("")
    assert re.search(r"\ncommit [0-9a-f]{12} with changes\n", version(tmp_path))


def test_the_newest_changes_are_of_this_version() -> None:
    newest = re.findall(r"^## (\S+)", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert f"foliolab {newest}\n" in version()


def completed(script: str, function: str, *words: str) -> list[str]:
    """What bash offers instead of the last of these words."""
    source = f'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); {function}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    argv = ["bash", "-euc", f"{script}\n{source}", "bash", *words]
    return subprocess.run(argv, capture_output=True, check=True, text=True).stdout.split()


def test_bash_completes_commands_verbs_and_options() -> None:
    script = lab("--completion").stdout
    assert completed(script, "_lab", "./lab", "si") == ["simulate"]
    assert completed(script, "_lab", "./lab", "kernel", "imp") == ["import"]
    assert completed(script, "_lab", "./lab", "measure", "sparse-mmap", "--dev") == ["--device"]
    assert completed(script, "_lab", "./lab", "exec", "--", "ls", "--dev") == []


def test_the_manual_has_every_command() -> None:
    page = lab("--manual").stdout
    titles = {line.split()[1] for line in page.splitlines() if line.startswith(".SS ")}
    assert {"demo", "measure", "compare", "simulate", "trace", "diagnose"} <= titles


def test_the_manual_has_every_exit_status() -> None:
    """But for those of other signals, and of a reader of our output who has gone."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LabError)]
    listed = re.findall(r"^\.B (\d+)$", lab("--manual").stdout.partition(".SH EXIT STATUS")[2], re.MULTILINE)
    assert sorted(map(int, listed)) == sorted({0, INTERRUPTED, *(kind.status for kind in kinds)})

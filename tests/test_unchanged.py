# SPDX-License-Identifier: GPL-2.0-only
"""Leaving out what has passed, in a small repository."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foliolab.cli.main import main
from foliolab.files import REPOSITORY

TESTS = {
    "test_alone.py": "def test():\n    pass\n",
    "test_grouped.py": "from foliolab.grouped import grouped\n\ndef test():\n    assert grouped([1], str)\n",
    "test_command.py": 'WORDS = ["python", "-m", "foliolab", "run"]\n\ndef test():\n    assert WORDS\n',
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    shutil.copytree(REPOSITORY / "foliolab", tmp_path / "foliolab", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests").mkdir()
    for name in ("__init__.py", "unchanged.py"):
        shutil.copyfile(REPOSITORY / "tests" / name, tmp_path / "tests" / name)
    for name, text in TESTS.items():
        (tmp_path / "tests" / name).write_text(text)
    (tmp_path / "README.md").write_text("what it is")
    (tmp_path / "probe.c").write_text("int main;")
    (tmp_path / ".gitignore").write_text("__pycache__\n.pytest_cache\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def ran(repository: Path, *options: str) -> list[str]:
    """The test files that --changed chooses."""
    argv = [sys.executable, "-m", "pytest", "-p", "tests.unchanged", "--changed", "-rA", *options, "tests"]
    done = subprocess.run(argv, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    return sorted(set(re.findall(r"^(?:PASSED|FAILED) tests/test_(\w+)\.py", done.stdout, re.MULTILINE)))


def test_what_passed_is_run_again_once_something_that_it_may_use_changed(repository: Path) -> None:
    assert ran(repository) == ["alone", "command", "grouped"]
    assert ran(repository) == []

    with (repository / "foliolab/grouped.py").open("a") as module:
        module.write("# edited\n")
    assert ran(repository) == ["command", "grouped"]
    (repository / "README.md").write_text("what it has become")
    assert ran(repository) == ["command"]
    (repository / "tests/test_alone.py").write_text("def test():\n    assert False\n")
    assert ran(repository) == ["alone"]
    assert ran(repository) == ["alone"]  # it failed
    (repository / "probe.c").write_text("int main();")
    assert ran(repository, "--numprocesses=2", "--dist=loadfile") == ["alone", "command", "grouped"]
    assert ran(repository) == ["alone"]


def test_no_arguments_for_pytest_go_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--changed", "--", "tests/test_paired.py"]) == 2
    assert "--changed is about all tests" in capsys.readouterr().err

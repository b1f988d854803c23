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

MODULES = ("__init__.py", "__main__.py", "cli/main.py", "errors.py", "files.py", "grouped.py", "reproduce/documents.py")
"""Of the lab: those that the plugin and these tests use. A command may use any that is there."""
HOST_MODULES = ("__init__.py", "errors.py", "files.py")
"""The same of the host's tools."""
TESTS = {
    "test_alone.py": "def test():\n    pass\n",
    "test_grouped.py": "from foliolab.grouped import grouped\n\ndef test():\n    assert grouped([1], str)\n",
    "test_command.py": 'WORDS = ["python", "-m", "foliolab", "run"]\n\ndef test():\n    assert WORDS\n',
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    modules = [*(f"foliolab/{module}" for module in MODULES), *(f"host/foliohost/{module}" for module in HOST_MODULES)]
    for name in (*modules, "tests/__init__.py", "tests/unchanged.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / name, tmp_path / name)
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

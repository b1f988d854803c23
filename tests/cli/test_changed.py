# SPDX-License-Identifier: GPL-2.0-only
"""The tests that './lab test --changed' chooses."""

import subprocess
from pathlib import Path

import pytest

from foliolab.cli.changed import beside, changed_files
from foliolab.cli.main import main
from foliolab.errors import LabError
from foliolab.files import REPOSITORY
from tests.git import git

DOCUMENTS = ["tests/test_commands.py", "tests/test_documents.py"]
ARCHITECTURE = "tests/test_architecture.py"


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("foliolab/vm/outcome.py", [ARCHITECTURE, "tests/vm/test_outcome.py"]),
        ("foliolab/report/pictures.py", [ARCHITECTURE, "tests/report/test_pictures.py"]),
        ("foliolab/kernel/name.py", [ARCHITECTURE, "tests/kernel/test_name.py"]),
        ("foliolab/kernel/make.py", [ARCHITECTURE, "tests/kernel"]),
        ("foliolab/cli/simulate.py", [ARCHITECTURE, "tests/cli/test_simulate.py", "tests/test_commands.py"]),
        ("foliolab/cli/kernel.py", [ARCHITECTURE, "tests/cli/test_failures.py", "tests/test_commands.py"]),
        ("foliolab/process.py", [ARCHITECTURE, "tests/test_process.py"]),
        ("foliolab/errors.py", [ARCHITECTURE]),
        ("kernel/patches/6.12/series", ["tests/kernel"]),
        ("kernel/files/mm/mmap_readahead_window.c", ["tests/kernel", "tests/model"]),
        ("kernel/first-steps/patches/7.3/series", ["tests/kernel"]),
        ("model/policies/first_steps.c", ["tests/model/test_first_steps.py"]),
        ("guest/windows/sparse-mmap.c", ["tests/guest/test_sparse_mmap.py"]),
        ("module/hooks.c", [f"tests/kernel/test_module{end}.py" for end in ("", "_under_stress")]),
        ("device/timed_disk.c", ["tests/test_device.py"]),
        ("docs/window.md", DOCUMENTS),
        ("README.md", DOCUMENTS),
        ("release/figures.toml", ["tests/kernel/test_release.py", "tests/reproduce", *DOCUMENTS]),
        ("packages.txt", ["tests/test_needs.py"]),
        ("tests/vm/test_qemu.py", ["tests/vm/test_qemu.py"]),
        ("tests/vm/test_that_is_gone.py", []),
        ("host/foliohost/cures.py", [ARCHITECTURE, "tests/host/test_cures.py"]),
        ("host/systemd/foliolab-host-restore.service", [ARCHITECTURE, "tests/host"]),
        ("tests/host/seen.py", ["tests/host"]),
        ("COPYING", []),
    ],
)
def test_tests_lie_where_files_do(file: str, tests: list[str]) -> None:
    assert beside([file]) == sorted(tests)


def test_what_lies_in_a_chosen_directory_is_not_chosen_twice() -> None:
    assert beside(["kernel/patches/6.12/series", "tests/kernel/test_name.py"]) == ["tests/kernel"]


def test_every_file_is_beside_tests_or_known_to_be_beside_none() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    files = listed.split()
    chosen = {file: beside([file]) for file in files}
    assert [test for tests in chosen.values() for test in tests if not (REPOSITORY / test).exists()] == []
    without = {file.partition("/")[0] for file, tests in chosen.items() if not tests}
    assert without <= {
        ".ci",
        ".editorconfig",
        ".gitignore",
        ".pre-commit-config.yaml",
        "COPYING",
        "pyproject.toml",
        "tests",
    }


def test_a_change_is_what_differs_from_main(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    for name in ("kept", "edited", "removed", "committed"):
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("ignored\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message=one")
    assert changed_files(tmp_path) == []
    git(tmp_path, "switch", "--quiet", "--create", "branch")
    (tmp_path / "committed").write_text("more")
    git(tmp_path, "commit", "--quiet", "--all", "--message=two")
    (tmp_path / "edited").write_text("more")
    (tmp_path / "removed").unlink()
    for name in ("new file", "ignored"):
        (tmp_path / name).write_text("")
    assert changed_files(tmp_path) == ["committed", "edited", "new file", "removed"]
    git(tmp_path, "branch", "--quiet", "--delete", "--force", "main")
    assert changed_files(tmp_path) == ["edited", "new file", "removed"]


def test_no_arguments_for_pytest_go_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--changed", "--", "tests/analyse/test_paired.py"]) == 2
    assert "--changed chooses tests itself" in capsys.readouterr().err


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="not a git repository"):
        changed_files(tmp_path)

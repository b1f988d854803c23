# SPDX-License-Identifier: GPL-2.0-only
"""What packages.txt lists is what the lab asks for, and what the bootstrap installs."""

import ast
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliolab.arch import ARCHITECTURES
from foliolab.errors import MissingTool
from foliolab.files import REPOSITORY
from foliolab.kernel.matrix import read_targets
from foliolab.process import _listed, find, needs, package_of, require, tool

PURPOSES = {"lab", "test", "matrix", "deb", "ltp", "stores", "debian"}


def asked_for() -> Iterator[str]:
    """What the code and the tests name where they ask for a tool."""
    for directory in ("foliolab", "tests"):
        for file in (REPOSITORY / directory).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("tool", "process.tool"):
                    (name,) = node.args
                    if isinstance(name, ast.Constant):
                        yield str(name.value)


def test_all_that_is_asked_for_is_listed_once() -> None:
    listed = [(need.name, need.machine) for need in _listed()]
    assert len(listed) == len(set(listed))
    assert {need.purpose for need in _listed()} == PURPOSES
    asked = set(asked_for())
    assert len(asked) > 10
    assert asked <= {name for name, _ in listed}


def test_architectures_find_what_they_need_on_each_machine() -> None:
    for arch in ARCHITECTURES.values():
        assert package_of(arch.qemu)
        assert package_of(f"{arch.headers}/stdio.h").startswith("libc6-dev")
        assert (package_of(arch.compiler) == "gcc") is arch.native
    machines = {arch.machine for arch in ARCHITECTURES.values()}
    for arch in ARCHITECTURES.values():
        for name in (arch.compiler, f"/usr/{arch.machine}-linux-gnu/include/stdio.h"):
            assert machines - {arch.machine} <= {need.machine for need in _listed() if need.name == name}


def test_compilers_of_the_matrix_are_brought_with_it() -> None:
    brought = {need.name for purpose in ("lab", "test", "matrix") for need in needs(purpose)}
    assert {target.compiler for target in read_targets()} <= brought


def test_programs_headers_and_files_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find("stdio.h") == find("/usr/include/stdio.h") == "/usr/include/stdio.h"
    assert find("no/such.h") is find("/no/such/file") is find("no-such-program") is None
    monkeypatch.setenv("PATH", "/nowhere")
    assert find("git") is None
    with pytest.raises(MissingTool, match=r"^git is not installed; 'apt-get install git' brings it"):
        tool("git")
    with pytest.raises(MissingTool, match="autoconf is not installed; 'apt-get install autoconf' brings it"):
        require("ltp")


@pytest.mark.parametrize(
    ("command", "purposes"),
    [
        ("measure sparse-mmap", {"lab"}),
        ("kernel build", {"lab"}),
        ("kernel deb out", {"lab", "deb"}),
        ("kernel matrix", {"lab", "test", "matrix"}),
        ("kselftest --suite ltp --source tree", {"lab", "ltp"}),
        ("kselftest --suite trinity", {"lab"}),
        ("test -k nothing", {"lab", "test"}),
        ("kernel matrix --help", set()),
        ("measure -h", set()),
        ("exec -- program --help", {"lab"}),
    ],
)
def test_a_machine_without_anything_is_told_what_a_command_takes(
    command: str, purposes: set[str], tmp_path: Path
) -> None:
    """With nothing but a shell, the few programs that the bootstrap itself is made of, and no root."""
    here = tmp_path / "checkout"
    here.mkdir()
    (here / "lab").write_bytes((REPOSITORY / "lab").read_bytes())
    # No path of a file is that of this machine's.
    text = (REPOSITORY / "packages.txt").read_text()
    (here / "packages.txt").write_text("".join(line for line in text.splitlines(True) if ".h " not in line))
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("readlink", "dirname", "uname", "cat"):
        (path / name).symlink_to(str(find(name)))
    (path / "id").write_text("#!/bin/sh\necho 1000\n")
    (path / "python3").write_text("#!/bin/sh\nexit 1\n")
    for name in ("id", "python3"):
        (path / name).chmod(0o755)
    settings = {"PATH": str(path), "PYTHON": str(path / "python3")}
    done = subprocess.run(
        ["/bin/sh", str(here / "lab"), *command.split()], env=settings, capture_output=True, text=True, check=False
    )
    told = done.stderr.splitlines()[0].partition("--no-install-recommends ")[2].split()
    wanted = [need for purpose in purposes for need in needs(purpose) if not need.name.endswith(".h")]
    wanted = [need for need in wanted if not Path("/usr/sbin", need.name).exists()]
    assert sorted(told) == sorted({*(need.package for need in wanted), "python3-venv"})


def test_locks_have_what_the_project_names_and_no_other_version() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lists = {"lab": project["dependencies"], **project["optional-dependencies"]}
    locked = {name: set(re.findall(r"^[\w-]+==\S+", lock(name), re.MULTILINE)) for name in lists}
    for name, wanted in lists.items():
        assert {each for each in wanted if "==" in each} <= locked[name]
        assert locked["lab"] <= locked[name] <= locked["test"]
        assert lock(name).count("==") <= lock(name).count("--hash=")


def lock(name: str) -> str:
    return (REPOSITORY / "requirements" / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("command", "lists"),
    [
        ("demo", ["lab"]),
        ("demo --picture reads.svg", ["figures"]),
        ("measure x --workers 2", ["lab", "cluster"]),
        ("compare --cluster=tcp://a:1", ["figures", "cluster"]),
        ("exec -- ./x --workers 2", ["lab"]),
        ("docs --build site", ["docs"]),
        ("test --changed", ["test"]),
    ],
)
def test_a_command_brings_the_python_packages_that_it_takes(command: str, lists: list[str], tmp_path: Path) -> None:
    """Once. pip is a script that notes what it is to install."""
    here = tmp_path / "checkout"
    shutil.copytree(REPOSITORY / "requirements", here / "requirements")
    shutil.copy(REPOSITORY / "lab", here)
    (here / "packages.txt").touch()
    note, pip, python = tmp_path / "note", tmp_path / "pip", tmp_path / "python3"
    pip.write_text(f'#!/bin/sh\nfor word; do case $word in */requirements/*) echo "$word" >>{note} ;; esac; done\n')
    python.write_text(
        f"#!/bin/sh\ncase $* in *-m\\ venv*) mkdir -p {here}/.venv/bin; cp {pip} {here}/.venv/bin/pip;"
        f' cp "$0" {here}/.venv/bin/python;; *version) echo Python 3.11;; esac\n'
    )
    for file in (pip, python):
        file.chmod(0o755)
    for _ in range(2):
        settings = os.environ | {"PYTHON": str(python)}
        subprocess.run([str(here / "lab"), *command.split()], env=settings, capture_output=True, check=True)
    assert [Path(line).stem for line in note.read_text().splitlines()] == lists

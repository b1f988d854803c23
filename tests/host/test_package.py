# SPDX-License-Identifier: GPL-2.0-only
"""The tools as packages of Debian's and of RPM's, with a manual page."""

import argparse
import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliohost.cli.main import COMMANDS, command_line
from foliolab.files import REPOSITORY
from foliolab.process import find, tool
from tests.host.pythons import MINORS, needed_python

BUILD = str(REPOSITORY / "host/build")
PROGRAM = "usr/bin/foliolab-host"
COMPLETIONS = "usr/share/bash-completion/completions/foliolab-host"


def made(directory: Path, python: str = sys.executable) -> Path:
    directory.mkdir()
    return Path(subprocess.check_output([python, "-B", BUILD, "--deb", str(directory)], text=True).strip())


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("package") / "one")


@pytest.fixture(scope="module")
def tree(package: Path) -> Path:
    """What it has, unpacked."""
    place = package.parent / "tree"
    subprocess.run([tool("dpkg-deb"), "--extract", str(package), str(place)], check=True)
    return place


def test_it_has_the_file_that_runs_and_says_what_it_takes(package: Path, tree: Path) -> None:
    program = tree / PROGRAM
    assert subprocess.check_output([str(program), "--version"], text=True) == "foliolab-host 0.1.0\n"
    fields = subprocess.check_output([tool("dpkg-deb"), "--field", str(package)], text=True)
    assert "Package: foliolab-host\nVersion: 0.1.0\nArchitecture: all\n" in fields
    assert "Depends: python3 (>= 3.9)\n" in fields
    assert sorted(path.name for path in package.parent.iterdir()) == [package.name, "tree"]


def test_the_program_alone_can_be_run(tree: Path) -> None:
    files = [path for path in tree.rglob("*") if path.is_file()]
    assert [path for path in files if path.stat().st_mode & 0o111] == [tree / PROGRAM]
    assert {path.stat().st_mode & 0o777 for path in (*files, *tree.rglob("*/"))} == {0o644, 0o755}


def test_it_has_all_units_and_enables_none(tree: Path) -> None:
    units = sorted(unit.name for unit in (tree / "usr/lib/systemd/system").iterdir())
    assert units == sorted(unit.name for unit in (REPOSITORY / "host/systemd").iterdir()) != []
    assert not (tree / "etc").exists()
    assert not list(tree.rglob("postinst"))


@pytest.mark.parametrize("minor", MINORS)
def test_equal_sources_make_equal_packages(minor: int, package: Path, tmp_path: Path) -> None:
    assert made(tmp_path / "two", needed_python(minor)).read_bytes() == package.read_bytes()


def test_without_the_maker_of_packages_there_is_a_sentence(tmp_path: Path) -> None:
    argv = [sys.executable, BUILD, "--rpm", str(tmp_path)]
    done = subprocess.run(argv, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "build: rpmbuild is not installed.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_package_of_rpm_installs_the_same_files_and_removes_them(tree: Path, tmp_path: Path) -> None:
    """Below a directory of its own, where there is no other package."""
    packager, root = str(Path(tool("rpmbuild")).with_name("rpm")), tmp_path / "root"
    package = subprocess.check_output([sys.executable, BUILD, "--rpm", str(tmp_path)], text=True).strip()
    listed = subprocess.check_output([packager, "-qlp", package], text=True).split()
    wanted = files_of(tree)
    assert {path.lstrip("/") for path in listed} - {"usr/share/doc/foliolab-host"} == wanted.keys()
    assert {"usr/share/man/man1/foliolab-host.1.gz", PROGRAM, COMPLETIONS} <= wanted.keys()
    installs = [packager, "--root", str(root)]
    subprocess.run([*installs, "--install", "--nodeps", package], check=True)
    assert {path: file for path, file in files_of(root).items() if path in wanted} == wanted
    subprocess.run([*installs, "--erase", "foliolab-host"], check=True)
    assert not wanted.keys() & files_of(root).keys()


def files_of(tree: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each file, by its path there."""
    files = (path for path in tree.rglob("*") if path.is_file())
    return {str(path.relative_to(tree)): (path.stat().st_mode, path.read_bytes()) for path in files}


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from options(verb)
        elif action.help != argparse.SUPPRESS:
            yield from action.option_strings


def test_the_manual_has_every_option(tree: Path) -> None:
    page = gzip.decompress((tree / "usr/share/man/man1/foliolab-host.1.gz").read_bytes()).decode()
    commands, _, _ = page.partition(".SH EXIT STATUS")
    parts: dict[str, str] = {}
    for part in commands.split("\n.SS ")[1:]:
        name = part.split()[0]
        parts[name] = parts.get(name, "") + part
    assert list(parts) == [*COMMANDS]
    for name in COMMANDS:
        (choices,) = (
            action.choices for action in command_line([name])._actions if isinstance(action, argparse._SubParsersAction)
        )
        wanted = {*options(choices[name])} - {"-h", "--help"}
        assert all(option.replace("-", "\\-") in parts[name] for option in wanted)
    assert "\\-\\-live" not in page


def test_the_manual_is_right(tree: Path) -> None:
    if not find("groff"):
        pytest.skip("groff is not installed")
    page = gzip.decompress((tree / "usr/share/man/man1/foliolab-host.1.gz").read_bytes())
    argv = ["groff", "-man", "-Tutf8", "-ww", "-z"]
    assert subprocess.run(argv, input=page, capture_output=True, check=True).stderr == b""


def test_bash_completes_what_there_is(tree: Path) -> None:
    script = (tree / COMPLETIONS).read_text()
    source = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _foliolab_host; echo "${COMPREPLY[@]}"'
    for words, offered in (
        (["di"], "diagnose"),
        (["cure", "ap"], "apply"),
        (["cure", "apply", "--dev"], "--device-of"),
        (["cure", "apply", "--file", ""], ""),  # then bash names files
        (["cure", "show", ""], "--json --help"),
    ):
        argv = ["bash", "-euc", f"{script}\n{source}", "bash", "foliolab-host", *words]
        assert subprocess.run(argv, capture_output=True, check=True, text=True).stdout.strip() == offered

# SPDX-License-Identifier: GPL-2.0-only
"""The repository that is made, and its driver, with this machine's own git."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.disks import git
from foliolab.errors import MissingTool
from foliolab.files import digest_files
from foliolab.kernel.source import Source
from tests.disks.driver import Driver

BLOBS = 60


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache, and a source of a few files, of which some are the same, ignored, programs or links."""
    directory = tmp_path_factory.mktemp("git store")
    for part in git._PARTS:
        (directory / "source" / part).mkdir(parents=True)
    for number in range(BLOBS - 2):
        text = "".join(f"line {line * number}\n" for line in range(100 + 100 * number))
        (directory / f"source/fs/{number:03}.o").write_text(text)
    (directory / "source/fs/copy").write_bytes((directory / "source/fs/007.o").read_bytes())
    (directory / "source/mm/program").write_text("#!/bin/sh\n")
    (directory / "source/mm/program").chmod(0o755)
    (directory / "source/mm/link").symlink_to("program")
    (directory / "source/.gitignore").write_text("*.o\n")
    (directory / "source/README").write_text("not a part\n")
    for part in git._PARTS:
        (directory / "source" / part / "empty").touch()
    return directory


@pytest.fixture
def made(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(place / "cache"))
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as the hooks of our own repository are run with
    monkeypatch.setattr(git, "from_debian", lambda version: Source(place / "source", "6.12.1", "identity"))
    return git.repository()


@pytest.fixture
def driver(made: Path) -> Driver:
    return Driver((str(git.drivers(NATIVE)["git"]),), made / "data")


@pytest.fixture
def copy(driver: Driver, tmp_path: Path) -> Driver:
    """With a repository that can be changed."""
    shutil.copytree(driver.data, tmp_path / "data")
    return replace(driver, data=tmp_path / "data")


def ask(made: Path, *words: str) -> str:
    argv = ["git", f"--git-dir={made}/data/repository", *words]
    return subprocess.run(argv, capture_output=True, check=True, text=True, env={"PATH": os.environ["PATH"]}).stdout


def test_a_repository_has_each_blob_of_the_parts_once_and_nothing_else(made: Path) -> None:
    oids = (made / "oids").read_text().split("\0")[:-1]
    # And the one that is empty, of all parts.
    assert len(oids) == len(set(oids)) == BLOBS + 1 == int((made / "records").read_text())
    names = ask(made, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert "fs/003.o" in names
    assert "README" not in names
    assert ask(made, "cat-file", "blob", "HEAD:mm/link") == "program"
    assert ask(made, "count-objects", "-v").startswith("count: 0\n")
    assert len(list((made / "data/repository/objects/pack").glob("*.pack"))) == 1
    assert ask(made, "fsck", "--full", "--strict") == ""


def test_a_repository_is_the_same_each_time(made: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest_files((path for path in made.rglob("*") if path.is_file()), made)
    assert git.repository() == made
    monkeypatch.setenv("FOLIOLAB_CACHE", str(place / "another cache"))
    again = git.repository()
    assert digest_files((path for path in again.rglob("*") if path.is_file()), again) == before
    assert again.name == made.name
    monkeypatch.setattr(git, "from_debian", lambda version: Source(place / "source", "6.12.2", "other"))
    assert git.repository().name != made.name


def test_reading(driver: Driver) -> None:
    last = BLOBS
    driver.does("open ro", "get 0", f"get {last}", "seek 7", "next 9", "prev 3", "first", f"next {last}", "close")
    driver.does("open ro", "last", f"prev {last}", "get 5", "next 2")


@pytest.mark.parametrize(
    ("operations", "sentence"),
    [
        (["get 61"], "git: record 61 is missing"),
        (["seek 61"], "git: there is no record from 61 on"),
        (["first", "prev 1"], "git: record 0 is the last on this way"),
        (["last", "next 1"], "git: record 60 is the last on this way"),
    ],
)
def test_what_is_not_there(driver: Driver, operations: list[str], sentence: str) -> None:
    assert driver.fails("open ro", *operations) == sentence


def test_what_git_does_not_have(driver: Driver) -> None:
    assert driver.fails("create") == "git: a repository is made by the lab"
    assert driver.fails("open rw", "put 1 1") == "git: no operation 'put'"
    assert driver.fails("open ro", hint="own") == "git: git has no switch against readahead"


def test_whole_packs(driver: Driver, made: Path, tmp_path: Path) -> None:
    driver.does("open ro", "get 1", f"compact {tmp_path}/small", f"copy {tmp_path}/copy", "check", "get 1")
    (pack,) = (tmp_path / "small").glob("pack-*.pack")
    objects = ask(made, "verify-pack", "-v", str(pack.with_suffix(".idx")))
    assert all(name in objects for name in (made / "oids").read_text().split("\0"))
    ask(made, "bundle", "verify", f"{tmp_path}/copy/bundle")


def test_an_index_is_that_which_is_there(copy: Driver) -> None:
    copy.does("open rw", "index")
    (index,) = (copy.data / "repository/objects/pack").glob("*.idx")
    assert (copy.data / "repository/new.idx").read_bytes() == index.read_bytes()


def test_damage_is_noticed(copy: Driver) -> None:
    (pack,) = (copy.data / "repository/objects/pack").glob("*.pack")
    content = bytearray(pack.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    pack.chmod(0o644)
    pack.write_bytes(content)
    everything = ["open ro", "first", f"next {BLOBS}"]
    assert "cannot be read" in copy.fails(*everything) or "ends too" in copy.fails(*everything)
    assert copy.fails("open ro", "check").startswith("git: git fsck ended with status ")


def test_a_machine_without_git(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingTool, match="'apt-get install git' brings it"):
        git.repository()

# SPDX-License-Identifier: GPL-2.0-only
"""How drivers are made of engines that are fetched, and what is said when they cannot be."""

import shutil
from pathlib import Path

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.disks import engines
from foliolab.disks.engines import DRIVERS
from foliolab.errors import BuildError, LabError, MissingTool
from tests.disks.driver import TOOLS


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    monkeypatch.setenv("CARGO_NET_OFFLINE", "true")
    return tmp_path


@pytest.mark.parametrize("store, tool", TOOLS.items())
def test_without_a_network_one_sentence_says_so(empty_cache: Path, store: str, tool: str) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    with pytest.raises(LabError, match=rf"{tool} .*' failed: .+") as caught:
        DRIVERS[store](NATIVE)
    assert "\n" not in str(caught.value)
    published = [path for path in (empty_cache / "cache/stores").glob("*/*") if not path.name.startswith(".")]
    assert published == []


@pytest.mark.parametrize("store, package", [("mdbx", "cargo"), ("bbolt", "golang-go")])
def test_missing_tools_are_named(empty_cache: Path, monkeypatch: pytest.MonkeyPatch, store: str, package: str) -> None:
    monkeypatch.setenv("PATH", "/usr/bin/no-such-directory")
    monkeypatch.setattr(process, "compiler", lambda arch: ("cc", b""))
    with pytest.raises(MissingTool, match=f"'apt-get install {package}' brings it"):
        DRIVERS[store](NATIVE)


def test_an_old_cargo_is_named(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = empty_cache / "bin/cargo"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho cargo 1.65.0\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent), prepend=":")
    with pytest.raises(MissingTool, match=r"cargo 1\.65\.0 cannot read the crate mdbx-sys; cargo 1\.85, .* can"):
        DRIVERS["mdbx"](NATIVE)


@pytest.mark.parametrize("times", [0, 2])
def test_another_bbolt_is_not_patched_by_guess(tmp_path: Path, times: int) -> None:
    file = tmp_path / "bolt_unix.go"
    file.write_text("call()\n" * times)
    with pytest.raises(BuildError, match=rf"bolt_unix.go of bbolt has 'call\(\)' {times} times instead of once"):
        engines._take_out(file, "call()\n")


def test_another_crate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mdbx.c").write_text("something else")
    with pytest.raises(BuildError, match=r"mdbx\.c of the crate mdbx-sys 14\.4\.0 is not the file that is known"):
        engines._verify(tmp_path, {"mdbx.c": "0" * 64})

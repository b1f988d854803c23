# SPDX-License-Identifier: GPL-2.0-only
"""The copy of a directory that a guest puts onto another file system."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.guest.program import MIB, failed

PROBE = "copy-tree"
LONG_AGO = 978307200 * 10**9  # 2001, in nanoseconds


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / "with blank/empty").mkdir(parents=True)
    (source / "lost+found").mkdir()
    copy.mkdir()
    (source / "with blank/program").write_text("content\n")
    (source / "with blank/program").chmod(0o750)
    (source / "link").symlink_to("with blank/nowhere")
    with (source / "holes").open("wb") as stream:
        stream.truncate(9 * MIB)
        stream.seek(5 * MIB)
        stream.write(b"x")
    for path in sorted(source.rglob("*"), reverse=True):
        os.utime(path, ns=(LONG_AGO, LONG_AGO), follow_symlinks=False)
    (source / "with blank/empty").chmod(0o500)
    return source, copy


def test_all_is_there_as_it_was(probe: Path, trees: tuple[Path, Path]) -> None:
    source, copy = trees
    subprocess.run([probe, source, copy], check=True)
    names = {path.relative_to(source) for path in source.rglob("*")} - {Path("lost+found")}
    assert {path.relative_to(copy) for path in copy.rglob("*")} == names
    for name in names:
        before, after = (source / name).lstat(), (copy / name).lstat()
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
        # Also of directories, which change when they are filled.
        assert after.st_mtime_ns == LONG_AGO
    assert (copy / "with blank/program").read_text() == "content\n"
    assert (copy / "link").readlink() == Path("with blank/nowhere")
    assert (copy / "holes").read_bytes() == (source / "holes").read_bytes()
    assert (copy / "holes").stat().st_blocks * 512 < MIB


def test_what_is_there_already_is_not_written_over(probe: Path, trees: tuple[Path, Path]) -> None:
    source, copy = trees
    (copy / "holes").write_text("mine")
    assert failed(probe, source, copy) == (1, f"copy-tree: {copy}/holes: File exists.")
    assert (copy / "holes").read_text() == "mine"

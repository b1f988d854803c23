# SPDX-License-Identifier: GPL-2.0-only
import os
from pathlib import Path

import pytest

from foliolab.kernel.source import Source
from foliolab.kernel.tree import working_tree

LONG_AGO = 1_000_000_000


@pytest.fixture
def pristine(tmp_path: Path) -> Source:
    tree = tmp_path / "home/pristine"
    (tree / "mm").mkdir(parents=True)
    for name in ("mm/a.c", "mm/b.c"):
        (tree / name).write_text(f"{name}, pristine\n")
        os.utime(tree / name, (LONG_AGO, LONG_AGO))
    return Source(tree, "6.12.99", "0123")


def test_unchanged_files_are_shared(pristine: Source) -> None:
    tree = working_tree(pristine, "patched", {"mm/a.c": b"ours\n", "mm/new.c": b"new\n"})
    assert (tree / "mm/a.c").read_bytes() == b"ours\n"
    assert (tree / "mm/new.c").read_bytes() == b"new\n"
    assert (tree / "mm/b.c").stat().st_ino == (pristine.tree / "mm/b.c").stat().st_ino
    assert (pristine.tree / "mm/a.c").read_text() == "mm/a.c, pristine\n"


def test_second_call_touches_nothing(pristine: Source) -> None:
    changed = {"mm/a.c": b"ours\n"}
    tree = working_tree(pristine, "patched", changed)
    before = {path: path.stat().st_mtime_ns for path in tree.rglob("*.c")}
    working_tree(pristine, "patched", changed)
    assert {path: path.stat().st_mtime_ns for path in tree.rglob("*.c")} == before


def test_only_what_changed_gets_a_new_time(pristine: Source) -> None:
    tree = working_tree(pristine, "patched", {"mm/a.c": b"one\n", "mm/new.c": b"new\n"})
    for name in ("mm/a.c", "mm/new.c"):
        os.utime(tree / name, (LONG_AGO, LONG_AGO))
    working_tree(pristine, "patched", {"mm/a.c": b"two\n", "mm/new.c": b"new\n"})
    assert (tree / "mm/a.c").stat().st_mtime > LONG_AGO
    assert (tree / "mm/new.c").stat().st_mtime == LONG_AGO


def test_change_taken_back_is_newer_than_what_was_built_from_it(pristine: Source) -> None:
    tree = working_tree(pristine, "patched", {"mm/a.c": b"ours\n", "mm/new.c": b"new\n"})
    for _ in range(2):  # also when nothing was built in between
        working_tree(pristine, "patched", {})
        assert (tree / "mm/a.c").read_text() == "mm/a.c, pristine\n"
        assert (tree / "mm/a.c").stat().st_mtime > LONG_AGO
        assert not (tree / "mm/new.c").exists()


def test_flavours_do_not_touch_each_other(pristine: Source) -> None:
    ours = working_tree(pristine, "patched", {"mm/a.c": b"ours\n"})
    os.utime(ours / "mm/a.c", (LONG_AGO, LONG_AGO))
    control = working_tree(pristine, "unpatched", {})
    assert (control / "mm/a.c").read_text() == "mm/a.c, pristine\n"
    assert (control / "mm/a.c").stat().st_mtime == LONG_AGO
    assert working_tree(pristine, "patched", {"mm/a.c": b"ours\n"}) == ours
    assert (ours / "mm/a.c").stat().st_mtime == LONG_AGO

# SPDX-License-Identifier: GPL-2.0-only
import os
import time
from pathlib import Path

import pytest

from foliolab.errors import SourceError, UnknownKernel
from foliolab.kernel.build import has_our_code
from foliolab.kernel.held import held
from foliolab.kernel.name import parse_name
from foliolab.kernel.series import applied
from foliolab.kernel.source import Source
from foliolab.kernel.tree import working_tree
from tests.git import git

LONG_AGO = 1_000_000_000
MAKEFILE = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits that differ in one file."""
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "linux"
    (place / "mm").mkdir(parents=True)
    git(place, "init", "--quiet")
    files = {"Makefile": MAKEFILE, ".gitignore": "*.o\n", "mm/a.c": "one\n", "mm/b.c": "b\n"}
    for file, content in files.items():
        (place / file).write_text(content)
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message=one")
    (place / "mm/a.c").write_text("two\n")
    (place / "mm/new.c").write_text("new\n")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message=two")
    return place


def source_of(text: str) -> Source:
    with held(parse_name(text)) as source:
        assert source.tree.is_dir()
        return source


def test_refs_share_one_tree_of_which_only_what_differs_is_written(repository: Path) -> None:
    first = source_of(f"{repository}@HEAD~1")
    assert first.version == "7.3.4"
    assert (first.tree / "mm/a.c").read_text() == "one\n"
    for file in ("mm/a.c", "mm/b.c"):
        os.utime(first.tree / file, (LONG_AGO, LONG_AGO))
    second = source_of(f"{repository}@HEAD")
    assert (second.tree, second.identity != first.identity) == (first.tree, True)
    assert (second.tree / "mm/a.c").read_text() == "two\n"
    assert (second.tree / "mm/a.c").stat().st_mtime > LONG_AGO
    assert (second.tree / "mm/new.c").exists()
    assert source_of(f"{repository}@HEAD~1") == first
    assert not (first.tree / "mm/new.c").exists()
    assert not (first.tree / ".git").exists()


def test_links_to_the_tree_have_no_file_written_anew(repository: Path) -> None:
    """What is built is built in a tree of such links; a new file would be compiled again."""
    first = source_of(f"{repository}@HEAD~1")
    time.sleep(1.1)  # git counts in seconds
    linked = working_tree(first, "unpatched", {}) / "mm/b.c"
    assert linked.samefile(first.tree / "mm/b.c")
    second = source_of(f"{repository}@HEAD")
    assert linked.samefile(second.tree / "mm/b.c")
    assert not (first.tree.parent / "work-unpatched/mm/a.c").samefile(second.tree / "mm/a.c")


def test_a_tree_is_taken_as_it_stands_and_left_as_it_is(repository: Path) -> None:
    clean = source_of(str(repository))
    assert clean == source_of(f"{repository}@HEAD")
    (repository / "mm/b.c").write_text("edited\n")
    (repository / "mm/untracked.c").write_text("untracked\n")
    (repository / "mm/b.o").write_text("object\n")
    before = git(repository, "status", "--porcelain"), git(repository, "count-objects", "-v")
    dirty = source_of(str(repository))
    assert dirty.identity != clean.identity
    assert (dirty.tree / "mm/b.c").read_text() == "edited\n"
    assert (dirty.tree / "mm/untracked.c").exists()
    assert not (dirty.tree / "mm/b.o").exists()
    assert (git(repository, "status", "--porcelain"), git(repository, "count-objects", "-v")) == before
    assert source_of(f"{repository}@HEAD") == clean
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=three")
    assert source_of(f"{repository}@HEAD") == dirty


def test_what_a_ref_leaves_out_is_said(repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "without what is not committed"
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare")
    (repository / "mm/b.o").write_text("ignored\n")
    for clean in (f"{repository}@HEAD", f"{tmp_path}/bare@HEAD", str(repository)):
        source_of(clean)
    assert said not in capsys.readouterr().err
    (repository / "mm/b.c").write_text("edited\n")
    source_of(str(repository))
    assert said not in capsys.readouterr().err
    index = (repository / ".git/index").stat()
    source_of(f"{repository}@HEAD~1")
    assert said in " ".join(capsys.readouterr().err.split())
    assert (repository / ".git/index").stat().st_mtime_ns == index.st_mtime_ns


def test_a_change_that_is_undone_where_git_does_not_see_it_is_made_again(repository: Path) -> None:
    """As after a kill between two refs: files of another one, with git's index as it was before."""
    source = source_of(f"{repository}@HEAD")
    (source.tree / "mm/a.c").write_text("half-way\n")
    (source.tree / "mm/other.c").write_text("half-way\n")
    (source.home / "index.lock").touch()
    assert source_of(f"{repository}@HEAD") == source
    assert (source.tree / "mm/a.c").read_text() == "two\n"
    assert not (source.tree / "mm/other.c").exists()


def test_the_tree_stays_where_it_is_until_another_is_asked_for(repository: Path, tmp_path: Path) -> None:
    """A kernel that the cache has is found so. If the tree went there and back, make would take files for new."""
    place = source_of(f"{repository}@HEAD").tree
    os.utime(place / "mm/a.c", (LONG_AGO, LONG_AGO))
    series = tmp_path / "series.patch"
    series.write_text("--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1 +1 @@\n-one\n+three\n")
    with held(parse_name(f"{repository}@HEAD~1")) as source:
        assert (source.version, source.place) == ("7.3.4", place)
        assert [source.read(file) for file in ("mm/a.c", "mm/new.c", "mm")] == [b"one\n", None, None]
        assert applied(source, [str(series)]) == {"mm/a.c": b"three\n"}
        assert not has_our_code(source, {})
    assert (place / "mm/a.c").stat().st_mtime == LONG_AGO


def test_working_trees_of_a_repository_share_what_is_built(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", "--detach", str(tmp_path / "second"), "HEAD~1")
    assert source_of(str(tmp_path / "second")) == source_of(f"{repository}@HEAD~1")


def test_no_such_ref(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownKernel, match=rf"{repository} has no ref 'v9\.9'\."):
        source_of(f"{repository}@v9.9")
    (tmp_path / "plain").mkdir()
    with pytest.raises(UnknownKernel, match="is not a git tree"):
        source_of(f"{tmp_path}/plain@HEAD")


def test_a_repository_of_something_else(repository: Path) -> None:
    git(repository, "rm", "--quiet", "Makefile")
    with pytest.raises(SourceError, match="is not a kernel tree: it has no Makefile"):
        source_of(str(repository))


def test_an_edit_that_keeps_size_and_time_is_seen(repository: Path) -> None:
    """As cp -p and rsync -t leave them; and one in the second in which the index was written."""
    before = source_of(str(repository)).identity
    file = repository / "mm/b.c"
    time_of = file.stat()
    file.write_text("c\n")
    os.utime(file, ns=(time_of.st_atime_ns, time_of.st_mtime_ns))
    after = source_of(str(repository))
    assert after.identity != before
    assert (after.tree / "mm/b.c").read_text() == "c\n"
    file.write_text("d\n")
    git(repository, "commit", "--quiet", "--all", "--message=d")
    file.write_text("e\n")
    assert (source_of(str(repository)).tree / "mm/b.c").read_text() == "e\n"

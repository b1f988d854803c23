# SPDX-License-Identifier: GPL-2.0-only
import shutil
from pathlib import Path

import pytest

from foliolab.errors import HookError, SeriesError
from foliolab.files import KERNEL
from foliolab.kernel.name import OURS
from foliolab.kernel.series import applied, diffs, ported, read_series
from foliolab.kernel.source import Source


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A copy of kernel/ that a test may spoil."""
    return Path(shutil.copytree(KERNEL, tmp_path / "kernel"))


def test_every_hook_applies_to_the_current_source(source: Source) -> None:
    changed = applied(source, [OURS])
    assert b"mmap_readahead_hits_around(vmf" in (changed["mm/filemap.c"] or b"")
    assert changed["mm/mmap_readahead.c"] == (KERNEL / "files/mm/mmap_readahead.c").read_bytes()


def test_changed_files_are_the_patched_and_the_new_ones(source: Source) -> None:
    expected = {file for feature in read_series() for file in (*diffs(feature.patch), *feature.files)}
    assert set(applied(source, [OURS])) == expected


def test_failing_hook_is_named_with_file_and_hunk(small_source: Source) -> None:
    filemap = small_source.tree / "mm/filemap.c"
    filemap.write_text(filemap.read_text().replace("ra->async_size = ra->ra_pages / 4;", "ra->async_size = 0;"))
    with pytest.raises(HookError, match=r"miss-tracepoint\.patch does not apply .* hunk 5 of mm/filemap\.c"):
        applied(small_source, [OURS])


def test_hook_into_a_file_that_is_gone(small_source: Source) -> None:
    (small_source.tree / "mm/filemap.c").unlink()
    with pytest.raises(HookError, match=r"changes mm/filemap\.c, which Linux 6\.12\.\d+ has not"):
        applied(small_source, [OURS])


def test_file_in_no_line_of_the_series(kernel: Path) -> None:
    (kernel / "files/mm/stray.c").write_text("")
    with pytest.raises(HookError, match=r"mm/stray\.c is in no line of"):
        read_series(kernel=kernel)


def test_line_of_the_series_without_its_file(kernel: Path) -> None:
    (kernel / "files/mm/mmap_readahead.c").unlink()
    with pytest.raises(HookError, match=r"mm/mmap_readahead\.c is not in kernel/files"):
        read_series(kernel=kernel)


def test_line_of_the_series_without_its_patch(kernel: Path) -> None:
    (kernel / "patches/6.12/mmap-honest-hits.patch").unlink()
    with pytest.raises(HookError, match=r"names mmap-honest-hits\.patch, which is not there"):
        read_series(kernel=kernel)


@pytest.fixture
def two_series(tmp_path: Path) -> Path:
    """A kernel/ of two bases."""
    for base in ("6.12", "7.3"):
        (tmp_path / "patches" / base).mkdir(parents=True)
        (tmp_path / "patches" / base / "series").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("version", "base"), [("6.12", "6.12"), ("6.12.117", "6.12"), ("6.18.3", "6.12"), ("7.3.4", "7.3"), ("7.10", "7.3")]
)
def test_the_newest_series_that_is_no_newer(two_series: Path, version: str, base: str) -> None:
    assert ported(version, two_series) == two_series / "patches" / base


def test_no_series_for_an_older_kernel(two_series: Path) -> None:
    with pytest.raises(HookError, match=r"made for Linux 6\.12 and 7\.3, and not for 6\.6\.99"):
        read_series("6.6.99", two_series)


MAIL = """\
From 0123 Mon Sep 17 00:00:00 2001
From: A <a@example.invalid>
Subject: [PATCH {number}/2] A change

---
{diff}--
2.39.5

"""
RENAMED = """\
diff --git a/mm/a.c b/mm/b.c
similarity index 50%
rename from mm/a.c
rename to mm/b.c
--- a/mm/a.c
+++ b/mm/b.c
@@ -1,2 +1,2 @@
-one
+two
 last
"""
CHANGED_AGAIN = """\
diff --git a/mm/b.c b/mm/b.c
--- a/mm/b.c
+++ b/mm/b.c
@@ -1,2 +1,2 @@
-two
+three
 last
diff --git a/mm/new.c b/mm/new.c
new file mode 100644
--- /dev/null
+++ b/mm/new.c
@@ -0,0 +1 @@
+new
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Source:
    (tmp_path / "tiny/mm").mkdir(parents=True)
    (tmp_path / "tiny/mm/a.c").write_text("one\nlast\n")
    return Source(tmp_path / "tiny", "7.3.4", "0123")


def test_a_mailbox_is_put_on_top(tiny: Source, tmp_path: Path) -> None:
    mbox = tmp_path / "series.mbox"
    mails = (RENAMED, CHANGED_AGAIN)
    mbox.write_text("".join(MAIL.format(number=number, diff=diff) for number, diff in enumerate(mails, start=1)))
    assert applied(tiny, [str(mbox)]) == {"mm/a.c": None, "mm/b.c": b"three\nlast\n", "mm/new.c": b"new\n"}
    assert (tiny.tree / "mm/a.c").read_text() == "one\nlast\n"


def test_series_are_put_on_top_of_each_other(tiny: Source, tmp_path: Path) -> None:
    first, second = tmp_path / "first.patch", tmp_path / "second.patch"
    first.write_text(RENAMED)
    second.write_text(CHANGED_AGAIN)
    assert applied(tiny, [str(first), str(second)])["mm/b.c"] == b"three\nlast\n"
    with pytest.raises(SeriesError, match=r"second\.patch does not apply to Linux 7\.3\.4: .*mm/b\.c"):
        applied(tiny, [str(second), str(first)])


def test_what_a_series_makes_does_not_depend_on_the_users_settings(
    tiny: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[apply]\n\twhitespace = fix\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    (tmp_path / "patch").write_text(RENAMED.replace("+two", "+two "))
    assert applied(tiny, [str(tmp_path / "patch")])["mm/b.c"] == b"two \nlast\n"


def test_a_file_without_a_patch_is_no_series(tiny: Source, tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear all\n")
    with pytest.raises(SeriesError, match="letter holds no patch"):
        applied(tiny, [str(tmp_path / "letter")])

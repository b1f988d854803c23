# SPDX-License-Identifier: GPL-2.0-only
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from foliohost.errors import UsageError
from foliohost.policy import Policy, named_files, read_policies
from foliohost.windows import open_in
from tests.host.conftest import Toucher


def write(directory: Path, name: str, text: str) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(text)
    return directory


def test_policies_are_read_in_the_order_of_their_files(tmp_path: Path) -> None:
    place = write(tmp_path, "b.conf", "# a comment\n[last]\nfiles = /x y/*.db\nread_ahead_kb = 0\n")
    write(
        place,
        "a.conf",
        "[first]\nfiles =\n  /a = b\n  /b/%d\nread_ahead_kb = 64\n[second]\nread_ahead_kb=4\nfiles=/c\n",
    )
    write(place, "ignored.txt", "[")
    (place / ".#a.conf").symlink_to("somebody@here.1234")
    assert read_policies(place) == [
        Policy("first", ("/a = b", "/b/%d"), 64),
        Policy("second", ("/c",), 4),
        Policy("last", ("/x y/*.db",), 0),
    ]
    assert read_policies(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("files = /x", ": Line 1 is in no section; one such as [lmdb] has to come first."),
        ("[x]\nfiles\n", ": Line 2 is no 'NAME = VALUE'."),
        ("[x]\nfiles = /x\nFiles = /y\n", ": Line 3 gives 'files' of [x] again."),
        ("[x]\nfiles = /x\n", "[x] has to have 'files' and 'read_ahead_kb', and nothing else."),
        ("[x]\nfiles = /x\nread_ahead_kb = 16\nmore = 1\n", "and nothing else."),
        ("[x]\nfiles = x\nread_ahead_kb = 16\n", "[x] 'files' are patterns of whole paths, a line each."),
        ("[x]\nfiles =\nread_ahead_kb = 16\n", "are patterns"),
        ("[x]\nfiles = /x\nread_ahead_kb = 16K\n", "[x] 'read_ahead_kb' is a number, not '16K'."),
        ("[x]\nfiles = /x\nread_ahead_kb = 5\n", "[x] read_ahead_kb is a multiple of 4 from 0"),
        ("[x]\nfiles = /x\nread_ahead_kb = 16\n[x]\n", ": Line 4 begins [x] again."),
        ("\udcff", " is no text."),
    ],
)
def test_what_is_no_policy(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "x.conf"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError) as raised:
        read_policies(tmp_path)
    assert words in str(raised.value)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("/a/*.mdb", "/a/x.mdb", "/a/b/x.mdb"),
        ("/a/*", "/a/.hidden", "/a"),
        ("/a/**/x", "/a/x", "/b/x"),
        ("/a/**/x", "/a/b/c/x", "/a/b/xx"),
        ("/a/**", "/a/b/c", "/b/a/c"),
        ("/a/[xy]?", "/a/x1", "/a/z1"),
        ("/a/**/**/x", "/a/x", "/a/b/xx"),
        ("/a/**/b/**/x", "/a/c/b/b/d/x", "/a/c/d/x"),
        ("/**/**/*", "/a", "a"),
        ("/a/**/**", "/a/b", "/a"),
    ],
)
def test_patterns(pattern: str, yes: str, no: str) -> None:
    policy = Policy("p", ("/other", pattern), 16)
    assert policy.names(yes)
    assert not policy.names(no)


def test_a_path_that_somebody_made_deep_takes_no_time() -> None:
    """Whoever has such a file open keeps the policies from no others."""
    policy = Policy("p", ("/**/a/**/a/**/a/**/b",), 16)
    began = time.process_time()
    assert not policy.names(2000 * "/a")
    assert policy.names(2000 * "/a" + "/b")
    assert time.process_time() - began < 1


def test_open_files_are_found_once_by_the_first_policy(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    policies = [Policy("none", ("/no/**",), 4), Policy("it", (f"{private_disk}/*",), 16), Policy("late", ("/**",), 64)]
    program, closed = start(path), start(path)
    closed.tell("close")
    found = [each for each in named_files(policies) if each.file.number == path.stat().st_dev]
    assert [(each.policy.name, each.file) for each in found] == [("it", open_in(program.pid, path))]
    assert named_files(policies[:1]) == []

# SPDX-License-Identifier: GPL-2.0-only
"""Directories of the cache, which several processes may want at the same time."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from foliolab import files
from foliolab.files import locked, made_once


def _with(content: str) -> Callable[[Path], None]:
    def make(place: Path) -> None:
        (place / "file").write_text(content)

    return make


def test_what_is_there_is_not_made_again_and_waits_for_nobody(tmp_path: Path) -> None:
    made = made_once(tmp_path, "one", _with("first"))
    with locked(tmp_path / ".one.lock"):
        assert made_once(tmp_path, "one", _with("second")) == made
    assert (made / "file").read_text() == "first"


def test_another_name_does_not_wait(tmp_path: Path) -> None:
    def make(place: Path) -> None:
        inner = made_once(tmp_path, "two", _with("two"))
        (place / "file").write_text((inner / "file").read_text())

    assert (made_once(tmp_path, "one", make) / "file").read_text() == "two"


def test_who_wants_the_same_is_told_and_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, told = Event(), Event()
    said: list[str] = []

    def make(place: Path) -> None:
        started.set()
        assert told.wait(60)
        (place / "file").write_text("once")

    def say(text: str) -> None:
        said.append(text)
        told.set()

    monkeypatch.setattr(files, "say", say)
    with ThreadPoolExecutor() as others:
        first = others.submit(made_once, tmp_path, "one", make)
        assert started.wait(60)
        assert (made_once(tmp_path, "one", _with("twice")) / "file").read_text() == "once"
        assert first.result() == tmp_path / "one"
    assert said == [f"Another process is making {tmp_path / 'one'}; waiting for it."]


def test_what_was_there_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    made = made_once(tmp_path, "one", _with("old"))

    def fail(place: Path) -> None:
        (place / "file").write_text("half")
        raise InterruptedError

    with pytest.raises(InterruptedError):
        made_once(tmp_path, "one", fail, anew=True)
    assert (made / "file").read_text() == "old"
    assert made_once(tmp_path, "one", _with("new"), anew=True) == made
    assert (made / "file").read_text() == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"one", ".one.lock"}


_HALF_MADE = """
import sys, time
from pathlib import Path
from foliolab.files import made_once

def make(place):
    (place / "file").touch()
    print("half-made", flush=True)
    time.sleep(100)

made_once(Path(sys.argv[1]), "6.12", make)
"""


def test_what_a_kill_leaves_goes_when_another_is_made(tmp_path: Path) -> None:
    left = tmp_path / ".6.12.partial/file"
    argv = [sys.executable, "-c", _HALF_MADE, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "half-made\n"
        made_once(tmp_path, "one", _with("one"))
        assert left.exists()  # its maker lives
        other.kill()
    assert left.exists()
    (tmp_path / ".6.12.former").mkdir()
    made_once(tmp_path, "two", _with("two"))
    assert {path.name for path in tmp_path.iterdir()} == {"one", ".one.lock", "two", ".two.lock", ".6.12.lock"}

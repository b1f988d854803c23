# SPDX-License-Identifier: GPL-2.0-only
"""What is taken for the standard input of a program in a guest."""

import io
import os
import sys
from pathlib import Path

import pytest

from foliolab.campaign.program import Input, spooled_input


def spooled(stdin: int, place: Path, monkeypatch: pytest.MonkeyPatch) -> Input | None:
    with os.fdopen(stdin, "rb") as stream:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        return spooled_input(place)


@pytest.mark.parametrize("content", [b"x", b"x" * 4096, b"x" * 4097], ids=len)
def test_a_disk_has_all_of_it_in_whole_blocks(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, content)
    os.close(theirs)
    found = spooled(ours, tmp_path, monkeypatch)
    assert found
    assert found.size_bytes == len(content)
    data = found.disk.path.read_bytes()
    assert (data.rstrip(b"\0"), len(data) % 4096) == (content, 0)


def test_what_is_no_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    terminal, device = os.openpty()
    try:
        for stdin in (terminal, os.open("/dev/null", os.O_RDONLY), os.open(empty, os.O_RDONLY)):
            assert spooled(stdin, tmp_path, monkeypatch) is None
    finally:
        os.close(device)
    monkeypatch.setattr(sys, "stdin", None)
    assert spooled_input(tmp_path) is None

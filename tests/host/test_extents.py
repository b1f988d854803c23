# SPDX-License-Identifier: GPL-2.0-only
import fcntl
import os
import struct
from pathlib import Path

import pytest

from foliohost.extents import has_map, plain_extents
from tests.disk_files import disk_file
from tests.tmpfs import tmpfs


def test_a_file_in_many_pieces_is_all_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hole behind each piece there are more extents than one answer has. Dirty pages are written for the first.

    To have them written again may take long where somebody writes all the time.
    """
    pieces, step = 600, 16384
    ask, asked = fcntl.ioctl, []

    def asking(handle: int, number: int, answer: bytearray) -> None:
        asked.append(struct.unpack_from("=16xL", answer)[0])
        ask(handle, number, answer)

    with disk_file(tmp_path, 4096), (tmp_path / "pieces").open("wb+") as file:
        for number in range(pieces):
            file.seek(number * step)
            file.write(os.urandom(step // 2))
        file.truncate(pieces * step)
        monkeypatch.setattr(fcntl, "ioctl", asking)
        found = list(plain_extents(file.fileno(), pieces * step))
        assert has_map(file.fileno())
    assert len(found) >= pieces
    assert (asked[0], set(asked[1:])) == (1, {0})
    covered = {block for start, end in found for block in range(start // 4096, end // 4096)}
    assert covered == {number * step // 4096 + half for number in range(pieces) for half in (0, 1)}


def test_memory_has_no_map(tmp_path: Path) -> None:
    with disk_file(tmp_path, 4096) as file, file.open("rb") as stream:
        assert has_map(stream.fileno())
    with tmpfs(tmp_path / "memory", "size=1M") as memory, (memory / "file").open("wb") as stream:
        assert not has_map(stream.fileno())

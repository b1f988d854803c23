# SPDX-License-Identifier: GPL-2.0-only
"""Which files are read from a disk, and scratch files, of which nothing is left."""

import errno
import os
from pathlib import Path

import pytest

from foliolab.errors import DiskFull, UsageError
from foliolab.trace.disk_file import require_on_disk, scratch_file
from tests.disk_files import disk_file
from tests.tmpfs import tmpfs

SIZE = 1 << 20


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory on a disk."""
    with disk_file(tmp_path, 4096):
        return tmp_path


def test_a_file_that_was_written_is_on_the_disk(place: Path) -> None:
    file = place / "whole"
    file.write_bytes(b"x" * (SIZE + 1))
    require_on_disk(file, SIZE + 1)
    with pytest.raises(UsageError, match=r"whole is too small: it has 1,048,577 bytes, and 1,048,578 are read"):
        require_on_disk(file, SIZE + 2)


def test_holes_and_what_was_never_written_are_refused(place: Path) -> None:
    hole, unwritten = place / "hole", place / "unwritten"
    with hole.open("wb") as file:
        file.write(b"x" * 65536)
        file.seek(SIZE - 4096)
        file.write(b"x" * 4096)
    with unwritten.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, SIZE)
        file.write(b"x" * 65536)
    for path in (hole, unwritten):
        require_on_disk(path, 65536)
        with pytest.raises(UsageError, match=rf"{path.name} has no plain data on the disk at byte 65,536"):
            require_on_disk(path, SIZE)


def test_what_is_no_file_of_a_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no file /none"):
        require_on_disk(Path("/none"), 1)
    with pytest.raises(UsageError, match="is no regular file"):
        require_on_disk(tmp_path, 1)
    with pytest.raises(UsageError, match="There is no directory /none"), scratch_file(Path("/none"), 1):
        pytest.fail("there is one")


def test_files_in_memory_are_refused(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "memory", "size=8M") as memory:
        (memory / "file").write_bytes(b"x" * SIZE)
        with pytest.raises(UsageError, match="file cannot be read past the page cache"):
            require_on_disk(memory / "file", SIZE)
        with pytest.raises(UsageError, match="memory cannot be read past"), scratch_file(memory, SIZE):
            pytest.fail("it was made")
        assert [path.name for path in memory.iterdir()] == ["file"]


def test_a_scratch_file_has_no_name_and_goes(place: Path) -> None:
    with scratch_file(place, SIZE + 5) as path:
        require_on_disk(path, SIZE + 5)
        assert list(place.iterdir()) == []
        assert len(set(path.read_bytes()[-5000:])) == 256
        handle = int(path.name)
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        os.fstat(handle)
    assert caught.value.errno == errno.EBADF


def test_what_a_call_leaves_of_a_scratch_file_is_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:100_000]))
    with scratch_file(place, SIZE + 5) as path:
        assert len(set(path.read_bytes()[-5000:])) == 256


def test_a_full_disk_is_told_before_it_is_full(place: Path) -> None:
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    with pytest.raises(DiskFull, match=f"holds {place}"), scratch_file(place, 2 * free):
        pytest.fail("there was room")
    assert list(place.iterdir()) == []
    assert os.statvfs(place).f_bavail * os.statvfs(place).f_frsize > free // 2

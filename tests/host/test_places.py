# SPDX-License-Identifier: GPL-2.0-only
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from foliohost import extents, places
from foliohost.errors import NoProbe, NotPermitted
from foliohost.places import BLOCK_BYTES, LEAST_BYTES, data_blocks, files_of, places_of
from tests.tmpfs import tmpfs


def file_of(path: Path, *parts: int, sync: bool = True) -> Path:
    """A file of so many bytes of data each, with a hole of as many behind each of them."""
    with path.open("wb") as stream:
        for size in parts:
            stream.write(os.urandom(size))
            stream.seek(size, os.SEEK_CUR)
        stream.truncate()
        if sync:
            os.fsync(stream.fileno())
    return path


def blocks_of(path: Path) -> list[tuple[int, int]]:
    handle = os.open(path, os.O_RDONLY)
    try:
        return data_blocks(handle)
    finally:
        os.close(handle)


def by_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is."""


def by_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system without a map."""
    monkeypatch.setattr(extents, "_FIEMAP", 0)


@pytest.fixture(params=[by_map, by_holes])
def disk(request: pytest.FixtureRequest, large_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on a disk."""
    request.param(monkeypatch)
    return large_file.parent


def test_holes_are_passed_over(disk: Path) -> None:
    file = file_of(disk / "holes", 4 * BLOCK_BYTES, 3 * BLOCK_BYTES)
    found = blocks_of(file)
    assert sum(blocks for _, blocks in found) in (6, 7)  # an extent that is split leaves less than a block
    for offset, blocks in found:
        assert offset % 4096 == 0
        inside = [
            (begin, end)
            for begin, end in ((0, 4 * BLOCK_BYTES), (8 * BLOCK_BYTES, 11 * BLOCK_BYTES))
            if begin <= offset and offset + blocks * BLOCK_BYTES <= end
        ]
        assert len(inside) == 1
    file.unlink()


def test_what_is_allocated_and_not_written_is_no_data(disk: Path) -> None:
    file = disk / "allocated"
    with file.open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, LEAST_BYTES)
    assert file.stat().st_blocks * 512 >= LEAST_BYTES
    assert blocks_of(file) == []
    with pytest.raises(NoProbe, match=r"Only 0 of 64 MiB of \S+ are data"), places_of(file, 1):
        pass
    file.unlink()


def test_places_are_within_the_data_and_everywhere_in_it(large_file: Path) -> None:
    size = large_file.stat().st_size
    with places_of(large_file, 1) as (found, files):
        picked = [found.pick(65536)[1] for _ in range(2000)]
    assert files == [large_file]
    assert found.data_bytes <= size
    assert max(picked) + 65536 <= size
    assert min(picked) < size // 8
    assert max(picked) > size // 8 * 7
    with places_of(large_file, 1) as (again, _):
        assert [again.pick(65536)[1] for _ in range(2000)] == picked
    with places_of(large_file, 2) as (other, _):
        assert [other.pick(65536)[1] for _ in range(2000)] != picked


def test_each_file_has_its_part_of_the_places(disk: Path) -> None:
    large, small = file_of(disk / "large", 30 * BLOCK_BYTES), file_of(disk / "small", 10 * BLOCK_BYTES)
    with places_of(disk, 1) as (found, files):
        assert {large, small} <= set(files)
        blocks = {handle: 0 for handle, _, _ in found._runs}
        for handle, _, number in found._runs:
            blocks[handle] += number
        for handle, number in blocks.items():
            share = sum(found.pick(4096)[0] == handle for _ in range(2000)) / 2000
            assert share == pytest.approx(number * BLOCK_BYTES / found.data_bytes, abs=0.1)
    large.unlink()
    small.unlink()


def test_the_largest_files_below_a_directory_come_first(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    one = file_of(tmp_path / "below/one", 3 * BLOCK_BYTES)
    two = file_of(tmp_path / "two", 2 * BLOCK_BYTES)
    file_of(tmp_path / "small", 4096)
    (tmp_path / "sparse").open("wb").truncate(LEAST_BYTES)
    (tmp_path / "link").symlink_to(one)
    os.mkfifo(tmp_path / "pipe")
    assert files_of(tmp_path) == [one, two]
    assert files_of(one) == [one]


def test_a_walk_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file_of(tmp_path / "file", 2 * BLOCK_BYTES)
    monkeypatch.setattr(places, "_WALK_SECONDS", -1.0)
    assert files_of(tmp_path) == []


def hole(directory: Path) -> Path:
    (directory / "file").open("wb").truncate(LEAST_BYTES)
    return directory / "file"


def small(directory: Path) -> Path:
    return file_of(directory / "file", BLOCK_BYTES)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (hole, "Only 0 of 64 MiB of {} are data in pieces of 1 MiB, and at least 64 MiB are needed"),
        (small, "{} is too small, with 2 MiB; at least 64 MiB are needed"),
        (lambda directory: directory, "The largest files below {} have 0 MiB of data that can be read"),
    ],
)
def test_too_little_data(make: Callable[[Path], Path], words: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    with pytest.raises(NoProbe) as raised, places_of(path, 1):
        pass
    assert words.format(path) in str(raised.value)


@pytest.mark.usefixtures("nobody")
def test_a_file_that_may_not_be_read() -> None:
    if subprocess.run(["test", "-r", "/etc/shadow"], check=False).returncode == 0:
        pytest.skip("here everybody may read it")
    with pytest.raises(NotPermitted, match="/etc/shadow may not be read"), places_of(Path("/etc/shadow"), 1):
        pass


def test_below_a_directory_files_that_cannot_be_read_are_skipped(
    large_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = large_file.parent / "gone"
    monkeypatch.setattr(places, "files_of", lambda path: [gone, Path("/proc/self/status"), large_file])
    with places_of(large_file.parent, 1) as (found, files):
        assert (files, found.size_bytes) == ([large_file], large_file.stat().st_size)
    with pytest.raises(FileNotFoundError) as raised, places_of(large_file, 1):
        pass
    assert raised.value.filename == str(gone)


def test_a_file_is_closed_however_it_ends(large_file: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with places_of(large_file, 1):
        assert len(list(Path("/proc/self/fd").iterdir())) == before + 1
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_other_file_systems_are_not_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That may mount them, or never end."""
    look, looked = os.scandir, []

    def noted(place: Path) -> object:
        looked.append(place)
        return look(place)

    with tmpfs(tmp_path / "other", "size=4M"):
        monkeypatch.setattr(os, "scandir", noted)
        assert files_of(tmp_path) == []
    assert looked == [tmp_path]

# SPDX-License-Identifier: GPL-2.0-only
"""Files of one host's cache on another: the very same, whatever that one has by the same name."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.campaign.files import FileSource, fetch, serving
from foliolab.errors import ClusterError


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """In the cache of the host that offers it."""
    file = tmp_path / "ours/disks/ext4-1.qcow2"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"disk" * 1000)
    return file


@pytest.fixture
def source(tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileSource]:
    """What the other host gets, whose cache is the one that is used from now on."""
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "ours"))
    with serving("127.0.0.1") as source:
        source.offer([disk])
        monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "theirs"))
        yield replace(source, offered=dict(source.offered))


def test_what_a_host_has_of_its_own_serves_if_it_is_the_same(tmp_path: Path, disk: Path, source: FileSource) -> None:
    own = tmp_path / "theirs/disks/ext4-1.qcow2"
    own.parent.mkdir(parents=True)
    own.write_bytes(disk.read_bytes())
    assert fetch(disk, source) == own
    own.write_bytes(b"made" * 1000)
    os.utime(own, ns=(0, 0))  # two writes may have one time
    found = fetch(disk, source)
    assert found.read_bytes() == disk.read_bytes()
    assert own.read_bytes() == b"made" * 1000


def test_what_was_fetched_serves_until_it_is_damaged(disk: Path, source: FileSource) -> None:
    found = fetch(disk, source)
    before = found.stat()
    assert fetch(disk, source) == found
    assert found.stat() == before
    found.write_bytes(b"disk" * 999 + b"junk")
    os.utime(found, ns=(0, 0))
    assert fetch(disk, source) == found
    assert found.read_bytes() == disk.read_bytes()


@pytest.mark.parametrize("damaged", [b"disk" * 999 + b"junk", b"disk" * 500])
def test_what_comes_has_to_be_what_was_offered(damaged: bytes, tmp_path: Path, disk: Path, source: FileSource) -> None:
    disk.write_bytes(damaged)
    with pytest.raises(ClusterError, match=r"disks/ext4-1\.qcow2 could not be fetched: what came is not"):
        fetch(disk, source)
    assert [file.name for file in (tmp_path / "theirs").rglob("*") if file.is_file()] == [".ext4-1.qcow2.fetch"]

# SPDX-License-Identifier: GPL-2.0-only
import mmap
import os
import random
from pathlib import Path

import pytest

from foliohost import pages
from foliohost.bits import pack
from foliohost.processes import PAGE_BYTES, mappings


def test_pack() -> None:
    numbers = random.Random(7)
    flags = bytes(numbers.randrange(2) for _ in range(1003))
    packed = pack(flags)
    assert [packed >> bit & 1 for bit in range(1003)] == list(flags)
    assert pack(b"") == 0


@pytest.mark.parametrize("around", [1, 4, 16])
@pytest.mark.parametrize("skew", [0, 3, 15])
def test_blocks_are_counted_one_by_one(skew: int, around: int) -> None:
    numbers = random.Random(skew)
    chosen = {numbers.randrange(5000) for _ in range(300)}
    packed = sum(1 << page for page in chosen)
    assert pages.blocks(packed, skew, around) == len({(page + skew) // around for page in chosen})
    assert pages.blocks(0, skew, around) == 0


@pytest.mark.parametrize("piece", [1 << 20, 100])
def test_mapped_pages_are_those_touched(piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fault-around, also neighbours; so one page of each of some distant blocks."""
    monkeypatch.setattr(pages, "_PIECE_PAGES", piece)
    path = tmp_path / "file"
    path.write_bytes(bytes(256 * PAGE_BYTES))
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as place:
        touched = [0, 100, 255]
        assert sum(place[page * PAGE_BYTES] for page in touched) == 0
        ours = [each for each in mappings(os.getpid()) if each.path == str(path)]
        found = pages.mapped(os.getpid(), ours)
        assert all(found >> page & 1 for page in touched)
        assert found.bit_length() == 256


def test_private_copies_are_no_pages_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(PAGE_BYTES))
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) as place:
        place[0] = 1
        ours = [each for each in mappings(os.getpid()) if each.path == str(path)]
        assert pages.mapped(os.getpid(), ours) == 0


def test_cached(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(9 * PAGE_BYTES + 1))
    assert pages.cached(path) == (1 << 10) - 1
    (tmp_path / "empty").touch()
    assert pages.cached(tmp_path / "empty") == 0
    assert pages.cached(tmp_path / "absent") is None


@pytest.mark.usefixtures("nobody")
def test_what_is_cached_of_others_files_is_not_guessed() -> None:
    assert pages.cached(Path("/bin/sh")) is None

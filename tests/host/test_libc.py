# SPDX-License-Identifier: GPL-2.0-only
import errno
import mmap
from pathlib import Path

import pytest

from foliohost.libc import call, mapping, residency


def test_pages_just_written_are_cached(tmp_path: Path) -> None:
    size = 2 * mmap.PAGESIZE + 1
    (tmp_path / "file").write_bytes(b"x" * size)
    with (tmp_path / "file").open("rb") as stream, mapping(stream.fileno(), size) as address:
        assert [byte & 1 for byte in residency(address, size)] == [1, 1, 1]


def test_a_mapping_that_cannot_be_is_named() -> None:
    with pytest.raises(OSError, match="Bad file descriptor") as raised, mapping(-1, 4096):
        pass
    assert raised.value.filename == "A mapping of 4,096 bytes"


def test_a_call_that_fails_says_why() -> None:
    with pytest.raises(OSError, match="Bad file descriptor") as raised:
        call("close", -1)
    assert (raised.value.errno, raised.value.filename) == (errno.EBADF, None)

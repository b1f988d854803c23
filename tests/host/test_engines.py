# SPDX-License-Identifier: GPL-2.0-only
import sqlite3
from pathlib import Path

import pytest

from foliohost.engines import ENGINES, engine_of, recognised


@pytest.mark.parametrize(
    ("name", "head", "tail"),
    [
        ("LMDB", bytes(16) + (0xBEEFC0DE).to_bytes(4, "little") + bytes(12), b""),
        ("bbolt", bytes(16) + (0xED0CDAED).to_bytes(4, "little") + bytes(12), b""),
        ("MDBX", bytes(20) + (0x59659DBDEF4C11 << 8 | 3).to_bytes(8, "little") + bytes(4), b""),
        ("Lucene", bytes.fromhex("3fd76c17") + bytes(28), b""),
        ("RocksDB", bytes(32), (0x88E241B785F4CFF7).to_bytes(8, "little")),
        ("GGUF", b"GGUF" + bytes(28), b""),
        ("git", b"PACK\0\0\0\2" + bytes(24), b""),
        ("", bytes(32), bytes(8)),
        ("", b"", b""),
    ],
)
def test_recognised(name: str, head: bytes, tail: bytes) -> None:
    assert recognised(head, tail) == name
    assert not name or name in ENGINES


def test_real_files(tmp_path: Path) -> None:
    path = tmp_path / "my.db"
    with sqlite3.connect(path) as database:
        database.execute("create table t (x)")
    assert engine_of(path) == "SQLite"
    assert engine_of(tmp_path / "absent") == ""

# SPDX-License-Identifier: GPL-2.0-only
"""Which storage engine a file belongs to, by its first or last bytes, and the engine's own switch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from foliohost.files import open_regular


@dataclass(frozen=True)
class Engine:
    name: str
    less: str
    """What makes it read less around misses; a command or a setting, word by word. Empty if there is nothing."""
    more: str = ""
    """What takes a hint for random access away, where it gives one by itself."""


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("LMDB", "mdb_env_open(env, path, flags | MDB_NORDAHEAD, mode)", "leave MDB_NORDAHEAD out"),
        Engine("MDBX", "mdbx_env_open(env, path, flags | MDBX_NORDAHEAD, mode)", "leave MDBX_NORDAHEAD out"),
        Engine("bbolt", "", "build bbolt without its call of madvise"),
        Engine("SQLite", "PRAGMA mmap_size=0;"),
        Engine(
            "Lucene",
            "java -Dorg.apache.lucene.store.defaultReadAdvice=RANDOM",
            "java -Dorg.apache.lucene.store.defaultReadAdvice=NORMAL",
        ),
        Engine("RocksDB", "options.allow_mmap_reads = false, or advise_random_on_open = true with newer versions"),
        Engine("git", ""),
        Engine("GGUF", "llama-cli --no-mmap", "llama-cli --no-mmap"),
    )
}


def engine_of(path: Path) -> str:
    """The engine's name; empty if the file is of none that is known, or cannot be read."""
    try:
        handle = open_regular(path)
        try:
            return recognised(os.pread(handle, 32, 0), os.pread(handle, 8, max(0, os.fstat(handle).st_size - 8)))
        finally:
            os.close(handle)
    except OSError:
        return ""


def recognised(head: bytes, tail: bytes) -> str:
    """The engine that writes such first 32 and last 8 bytes, or nothing."""
    if head.startswith(b"SQLite format 3\0"):
        return "SQLite"
    if head.startswith(b"PACK\0\0\0"):
        return "git"
    if head.startswith(b"GGUF"):
        return "GGUF"
    if head.startswith(b"\x3f\xd7\x6c\x17"):
        return "Lucene"
    # Of a meta page: after its header, of 16 or 20 bytes, in the byte order of the machine that wrote it.
    if int.from_bytes(head[16:20], "little") == 0xBEEFC0DE:
        return "LMDB"
    if int.from_bytes(head[16:20], "little") == 0xED0CDAED:
        return "bbolt"
    if int.from_bytes(head[20:28], "little") >> 8 == 0x59659DBDEF4C11:
        return "MDBX"
    if int.from_bytes(tail, "little") in (0x88E241B785F4CFF7, 0xDB4775248B80FB57):
        return "RocksDB"
    return ""

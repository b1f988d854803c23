# SPDX-License-Identifier: GPL-2.0-only
"""What program-workload lets databases on mapped files do: look up single records, mostly of few, and read all between.

Both hold the same records. SQLite maps its file because it is told to, LMDB always.
"""

import random
import sqlite3
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import lmdb

RECORDS = 98_304
VALUE_BYTES = 896
"""So that four records fill a page of a B-tree: 96 MiB in all, and every record's page is read for it."""
LOOKUPS = 8_000
"""Between two scans."""
SCANS = 2
SPREAD = 60_013
"""Coprime to RECORDS: keys next to each other in rank are not so in the file."""

DIRECTORY = Path("/var/lib/databases")
SQLITE_FILE = f"{DIRECTORY}/sqlite"
LMDB_FILE = f"{DIRECTORY}/lmdb"


def value_of(key: int) -> bytes:
    return key.to_bytes(8, "big") * (VALUE_BYTES // 8)


def looked_up(numbers: random.Random) -> Iterable[int]:
    """Keys by Zipf's law: a quarter of all lookups goes to not even twenty."""
    for _ in range(LOOKUPS):
        rank = int(RECORDS ** numbers.random()) - 1
        yield rank * SPREAD % RECORDS


def work(find: Callable[[int], bytes], count_all: Callable[[], int]) -> None:
    """Look up, scan, look up, scan, and so on; the last lookups find what the last scan has left."""
    numbers = random.Random(1)
    for scanned in range(SCANS + 1):
        for key in looked_up(numbers):
            assert find(key)[:8] == key.to_bytes(8, "big")
        if scanned < SCANS:
            assert count_all() == RECORDS


def build_sqlite() -> None:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(SQLITE_FILE) as connection:
        connection.execute("create table records (key integer primary key, value blob)")
        rows = ((key, value_of(key)) for key in range(RECORDS))
        connection.executemany("insert into records values (?, ?)", rows)
    connection.close()


def use_sqlite() -> None:
    connection = sqlite3.connect(f"file:{SQLITE_FILE}?mode=ro&immutable=1", uri=True)
    (mapped,) = connection.execute("pragma mmap_size = 1073741824").fetchone()
    assert mapped == 1 << 30

    def find(key: int) -> bytes:
        (value,) = connection.execute("select value from records where key = ?", (key,)).fetchone()
        return bytes(value)

    def count_all() -> int:
        count, _ = connection.execute("select count(*), sum(length(value)) from records").fetchone()
        return int(count)

    work(find, count_all)


def build_lmdb() -> None:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    environment = lmdb.open(LMDB_FILE, map_size=1 << 30, subdir=False, lock=False)
    with environment.begin(write=True) as transaction:
        for key in range(RECORDS):
            transaction.put(key.to_bytes(8, "big"), value_of(key), append=True)
    environment.close()


def use_lmdb() -> None:
    environment = lmdb.open(LMDB_FILE, map_size=1 << 30, subdir=False, lock=False, readonly=True)
    with environment.begin(buffers=True) as transaction:

        def find(key: int) -> bytes:
            return bytes(transaction.get(key.to_bytes(8, "big"))[:8])

        def count_all() -> int:
            return sum(1 for _ in transaction.cursor().iternext(keys=True, values=False))

        work(find, count_all)


def main() -> None:
    actions = {
        ("build", "sqlite"): build_sqlite,
        ("build", "lmdb"): build_lmdb,
        ("use", "sqlite"): use_sqlite,
        ("use", "lmdb"): use_lmdb,
    }
    actions[sys.argv[1], sys.argv[2]]()


if __name__ == "__main__":
    main()

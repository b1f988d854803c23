# SPDX-License-Identifier: GPL-2.0-only
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.disks.engines import DRIVERS
from tests.disks.driver import TOOLS
from tests.processes import wait_until

RECORDS = 1000
SOME = range(0, RECORDS, 37)
FILES = {"lmdb": "data.mdb", "mdbx": "mdbx.dat", "sqlite": "records.db", "bbolt": "records.bolt"}
ALL_64_BITS = (1 << 64) - 1


def mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & ALL_64_BITS
    x = (x ^ x >> 27) * 0x94D049BB133111EB & ALL_64_BITS
    return x ^ x >> 31


def value(key: int, version: int) -> bytes:
    """What a driver has to store."""
    words = (mix((mix(key) + version + i) & ALL_64_BITS) for i in range(300))
    content = (
        key.to_bytes(8, "big") + version.to_bytes(8, "big") + b"".join(word.to_bytes(8, "little") for word in words)
    )
    return content[: 200 + mix(key) % 1601]


class Driver:
    """The drivers of one store."""

    def __init__(self, store: str) -> None:
        if store in TOOLS and not shutil.which(TOOLS[store]):
            pytest.skip(f"{TOOLS[store]} is not installed")
        self.store = store
        self._programs = DRIVERS[store](NATIVE)

    def argv(self, data: Path, hint: str) -> list[str]:
        name = "bbolt-no-hint" if (self.store, hint) == ("bbolt", "none") else self.store
        return [str(self._programs[name]), str(data), hint]

    def _done(self, data: Path, operations: tuple[str, ...], hint: str) -> subprocess.CompletedProcess[str]:
        text = "".join(f"{operation}\n" for operation in operations)
        done = subprocess.run(self.argv(data, hint), input=text, capture_output=True, text=True, check=False)
        assert done.stdout == ""
        return done

    def run(self, data: Path, *operations: str, hint: str = "none") -> None:
        done = self._done(data, operations, hint)
        assert (done.stderr, done.returncode) == ("", 0)

    def failure(self, data: Path, *operations: str) -> str:
        """The one sentence of a driver that fails, without its name."""
        done = self._done(data, operations, "none")
        assert done.returncode == 1
        name, sentence = done.stderr.split(": ", 1)
        assert name == Path(self.argv(data, "none")[0]).name
        assert sentence.count("\n") == 1
        return sentence.strip()

    def file(self, data: Path) -> Path:
        return data / FILES[self.store]

    def content(self, data: Path) -> bytes:
        """Of the file, without the room at its end, which takes long to search."""
        return self.file(data).read_bytes().rstrip(b"\0")


@pytest.fixture(scope="module", params=list(FILES))
def engine(request: pytest.FixtureRequest) -> Driver:
    return Driver(request.param)


@pytest.fixture
def data(engine: Driver, tmp_path: Path) -> Path:
    """A store with version 1 of all records, put in scattered order."""
    directory = tmp_path / "data"
    directory.mkdir()
    operations = ["create"]
    for i in range(RECORDS):
        operations += [f"put {i * 617 % RECORDS} 1", *(["commit"] if i % 100 == 99 else [])]
    engine.run(directory, *operations, "close")
    return directory


@pytest.mark.parametrize("hint", ["none", "own"])
def test_every_way_to_read(engine: Driver, data: Path, hint: str) -> None:
    engine.run(
        *(data, "open ro", "first", f"next {RECORDS - 1}", "last", f"prev {RECORDS - 1}"),
        *("seek 500", "next 3", "prev 503", "next 999", "get 0", "prev 999", "next 0", "get 999", "close"),
        *("open rw", "get 17"),
        hint=hint,
    )


def test_records_are_what_they_are_said_to_be(engine: Driver, data: Path) -> None:
    content = engine.content(data)
    assert all(value(key, 1) in content for key in SOME)
    assert value(1, 2) not in content


def test_what_is_not_there_is_missed(engine: Driver, data: Path) -> None:
    assert engine.failure(data, "open ro", "get 1000") == "record 1000 is missing"
    assert engine.failure(data, "open ro", "seek 1000") == "there is no record from 1000 on"
    assert engine.failure(data, "open ro", "first", "next 1000") == "record 999 is the last on this way"
    assert engine.failure(data, "open ro", "seek 4", "prev 5") == "record 0 is the last on this way"


def test_updates(engine: Driver, data: Path) -> None:
    engine.run(
        *(data, "open rw", "get 5", "put 5 2", "put 2000 7", "commit", "get 5", "seek 1000", "prev 1", "next 1"),
        *("put 2001 1", "commit", "last", f"prev {RECORDS + 1}"),
    )
    engine.run(data, "open ro", "get 5", "get 2000", "get 2001", "first", f"next {RECORDS + 1}")
    content = engine.content(data)
    assert value(5, 2) in content
    assert value(2000, 7) in content
    assert engine.failure(data, "open ro", "get 2002") == "record 2002 is missing"


def spoil(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    assert len(old) == len(new)
    path.write_bytes(content.replace(old, new))


def test_a_damaged_value_is_seen(engine: Driver, data: Path) -> None:
    good = value(321, 1)
    spoil(engine.file(data), good, good[:-1] + bytes([good[-1] ^ 1]))
    engine.run(data, "open ro", "get 320", "get 322")
    assert engine.failure(data, "open ro", "get 321") == "record 321 is damaged"
    assert engine.failure(data, "open ro", "first", "next 999") == "record 321 is damaged"
    good = value(654, 1)
    spoil(engine.file(data), good, bytes(8) + good[8:])
    assert engine.failure(data, "open ro", "seek 654") == "record 654 is damaged"


@pytest.mark.parametrize("operation", ["compact", "copy"])
def test_copies_are_stores(engine: Driver, data: Path, tmp_path: Path, operation: str) -> None:
    engine.run(data, "open rw", *(f"put {key} 2" for key in range(0, RECORDS, 3)), "commit")
    before = engine.file(data).read_bytes()
    copy = tmp_path / "copy"
    engine.run(data, "open ro", "get 1", f"{operation} {copy}", "get 1")
    assert engine.file(data).read_bytes() == before
    engine.run(copy, "open ro", "first", f"next {RECORDS - 1}")
    content = engine.content(copy)
    assert all(value(key, 1 if key % 3 else 2) in content for key in SOME)
    # All records once: whatever is free is left out.
    assert operation == "copy" or all(value(key, 1) not in content for key in SOME if key % 3 == 0)
    assert engine.failure(data, "open ro", f"{operation} {copy}").startswith("cannot make ")


def test_check(engine: Driver, data: Path) -> None:
    if engine.store == "lmdb":
        assert engine.failure(data, "open ro", "check") == "no operation 'check'"
        return
    engine.run(data, "open ro", "get 1", "check", "get 1")
    engine.run(data, "open rw", "check")
    path = engine.file(data)
    if engine.store == "sqlite":
        content = path.read_bytes()
        page = content.index(value(500, 1)) // 4096 * 4096
        spoil(path, content[page : page + 8], bytes(8))
    else:
        spoil(path, (500).to_bytes(8, "big") + value(500, 1), bytes(8) + value(500, 1))
    assert engine.failure(data, "open ro", "check").startswith("the check ")


def test_index(engine: Driver, data: Path) -> None:
    entries = [value(key, 1)[16:24] + key.to_bytes(8, "big") for key in SOME]
    content = engine.content(data)
    assert all(entry not in content for entry in entries)
    assert engine.failure(data, "open ro", "index") == "'index', but the store is open for reading"
    engine.run(data, "open rw", "first", "index", "get 1", "first", f"next {RECORDS - 1}")
    if engine.store == "sqlite":
        with sqlite3.connect(engine.file(data)) as db:
            plan = db.execute("EXPLAIN QUERY PLAN SELECT key FROM records WHERE word = 1").fetchone()
            words = db.execute("SELECT word FROM records INDEXED BY by_word WHERE word > ?", (-(1 << 63),)).fetchall()
        assert "by_word" in plan[3]
        found = [word for (word,) in words]
        assert found == sorted(int.from_bytes(value(key, 1)[16:24], "little", signed=True) for key in range(RECORDS))
    else:
        content = engine.content(data)
        assert all(entry in content for entry in entries)


@pytest.mark.parametrize(
    "operations, sentence",
    [
        (("open ro", "frobnicate"), "no operation 'frobnicate'"),
        (("open ro", ""), "no operation ''"),
        (("open ro", "get"), "'get' takes 1 arguments"),
        (("open ro", "get 1 2"), "'get' takes 1 arguments"),
        (("open ro", "get x"), "'x' is no number"),
        (("open ro", "get -1"), "'-1' is no number"),
        (("open wo",), "a store is opened 'ro' or 'rw', not 'wo'"),
        (("get 1",), "'get', but the store is not open"),
        (("open ro", "create"), "'create', but the store is open"),
        (("open ro", "put 1 2"), "'put', but the store is open for reading"),
        (("open rw", "put 1 2", "get 1"), "'get' before a commit"),
        (("open rw", "put 1 2"), "the operations end before a commit"),
        (("open rw", "commit"), "there is nothing to commit"),
        (("open ro", "next 1"), "the cursor is nowhere"),
        (("open rw", "first", "put 1 2", "commit", "next 1"), "the cursor is nowhere"),
    ],
)
def test_wrong_operations_are_refused(engine: Driver, data: Path, operations: tuple[str, ...], sentence: str) -> None:
    assert engine.failure(data, *operations) == sentence
    # For writing: a transaction that nobody has ended is for writers to roll back.
    engine.run(data, "open rw", "get 1", "first", "next 999")


def test_a_store_that_is_not_there_is_not_made(engine: Driver, tmp_path: Path) -> None:
    for mode in ("ro", "rw"):
        assert engine.failure(tmp_path, f"open {mode}")
        if engine.store not in ("lmdb", "mdbx"):
            assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("mode", ["ro", "rw"])
@pytest.mark.parametrize("hint", ["none", "own"])
def test_the_hint_is_given_to_the_mapping(engine: Driver, data: Path, tmp_path: Path, mode: str, hint: str) -> None:
    mark = tmp_path / "mark"
    with subprocess.Popen(engine.argv(data, hint), stdin=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin
        process.stdin.write(f"open {mode}\nget 5\ncopy {mark}\nfirst\nget 6\n")
        # All but the last operations are done when this is there.
        assert wait_until(mark.exists)
        smaps = Path(f"/proc/{process.pid}/smaps").read_text()
        process.stdin.close()
        assert process.wait() == 0
    mappings = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", smaps, flags=re.MULTILINE)
    # What comes from reserved address space behind the file is none of our business.
    flags = [re.search(r"VmFlags: (.*)", each) for each in mappings if f"{engine.file(data)}\n" in each]
    found = ["rr" in match[1].split() for match in flags if match]
    assert found
    assert found[0] == (hint == "own")


def test_drivers_are_static_and_cached(engine: Driver) -> None:
    programs = DRIVERS[engine.store](NATIVE)
    for program in programs.values():
        assert b"INTERP" not in subprocess.run(["readelf", "-lW", program], capture_output=True, check=True).stdout
    made = {name: program.stat() for name, program in programs.items()}
    assert DRIVERS[engine.store](NATIVE) == programs
    assert {name: program.stat() for name, program in programs.items()} == made


@pytest.mark.boot
def test_bbolt_has_a_build_for_each_hint(tmp_path: Path) -> None:
    bbolt = Driver("bbolt")
    for hint, other in (("none", "own"), ("own", "none")):
        argv = [*bbolt.argv(tmp_path, hint)[:2], other]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.endswith(f": this is the build for the hint '{hint}'\n")

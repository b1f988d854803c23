# SPDX-License-Identifier: GPL-2.0-only
"""Lucene's driver on this machine, in the root directory that is made for guests."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.disks import lucene
from foliolab.errors import BuildError, MissingTool
from foliolab.files import digest_files
from tests.disks.driver import Driver
from tests.disks.test_drivers import value
from tests.processes import wait_until

RECORDS = 3000
LAST = RECORDS - 1
_UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
_ENTER = """
mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --bind "$2" "$1/tmp" || exit
tree=$1
shift 2
exec chroot "$tree" /src/lucene "$@"
"""


@pytest.fixture(scope="module")
def lucene_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("mvn"):
        pytest.skip("Maven is not installed")
    directory = tmp_path_factory.mktemp("root") / "tree"
    lucene.root(NATIVE)._fill(directory)
    return directory


@pytest.fixture(scope="module")
def scratch(lucene_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """/tmp of the driver, with an index in /tmp/data that was made in scattered order."""
    directory = tmp_path_factory.mktemp("scratch")
    (directory / "data").mkdir()
    mounts = [*_UNSHARE, 'mount --rbind /proc "$1" && mount --bind "$1" "$1"', "sh", str(directory / "data")]
    if subprocess.run(mounts, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody have mounts of their own")
    driver = made_by(lucene_root, directory, "data")
    operations = ["create"]
    for i in range(RECORDS):
        operations.append(f"put {i * 1013 % RECORDS} 1")
        if i % 250 == 249:
            operations.append("commit")
    driver.does(*operations, "close")
    return directory


def made_by(lucene_root: Path, scratch: Path, data: str) -> Driver:
    return Driver((*_UNSHARE, _ENTER, "sh", str(lucene_root), str(scratch)), Path("/tmp", data))


@pytest.fixture
def driver(lucene_root: Path, scratch: Path) -> Driver:
    return made_by(lucene_root, scratch, "data")


@pytest.fixture
def copy(lucene_root: Path, scratch: Path, request: pytest.FixtureRequest) -> Driver:
    """With an index that can be changed."""
    shutil.copytree(scratch / "data", scratch / request.node.name)
    return made_by(lucene_root, scratch, request.node.name)


def segments(index: Path) -> set[str]:
    return {path.stem for path in index.glob("*.si")}


def test_reading(driver: Driver, scratch: Path) -> None:
    assert len(segments(scratch / "data")) > 1
    driver.does("open ro", "get 0", f"get {LAST}", "seek 77", "next 100", "first", f"next {LAST}", "last", "check")
    driver.does("open ro", f"seek {LAST}", "close", "open ro", "get 5", hint="own")


def test_values_are_those_of_all_stores_and_not_compressed(driver: Driver, scratch: Path) -> None:
    files = [path.read_bytes() for path in (scratch / driver.data.name).iterdir()]
    for key in (0, 7, LAST):
        assert sum(value(key, 1) in content for content in files) == 1


def test_what_is_not_there(driver: Driver) -> None:
    assert driver.fails("open ro", f"get {RECORDS}") == f"lucene: no record {RECORDS}"
    assert driver.fails("open ro", "last", "next 1") == "lucene: 1 records less than there should be"
    assert driver.fails("open ro", f"seek {RECORDS}") == "lucene: no record with such a key or a larger one"
    assert driver.fails("open ro", "last", "prev 1") == "lucene: no operation 'prev'"
    assert driver.fails("open rw", "index") == "lucene: no operation 'index'"
    assert driver.fails("open ro", "put 1 1") == "lucene: the index is not open for writing"


def test_a_record_that_is_replaced_is_there_once(copy: Driver) -> None:
    copy.does("open rw", *(f"put {key} 2" for key in range(0, RECORDS, 7)), "commit", "get 7", "get 8")
    copy.does("open ro", "first", f"next {LAST}", "check")
    assert copy.fails("open ro", "last", "next 1") == "lucene: 1 records less than there should be"


def test_a_new_record_is_found_after_its_commit(copy: Driver) -> None:
    new = RECORDS + 5
    copy.does("open rw", f"seek {LAST}", f"put {new} 1", "commit", f"seek {LAST}", "next 1", f"get {new}", "last")


def test_another_index(driver: Driver, copy: Driver, lucene_root: Path, scratch: Path) -> None:
    driver.does("open ro", "get 1", "copy /tmp/same", "compact /tmp/compact", "get 1")
    assert segments(scratch / "same") == segments(scratch / "data")
    assert len(segments(scratch / "compact")) == 1
    for name in ("same", "compact"):
        made_by(lucene_root, scratch, name).does("open ro", "first", f"next {LAST}", "check")


def test_damage_is_noticed(copy: Driver, scratch: Path) -> None:
    largest = max((scratch / copy.data.name).iterdir(), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 3000] = bytes(3000)
    largest.write_bytes(content)
    assert copy.fails("open ro", "check") == "lucene: the index is damaged"
    assert "record" in copy.fails("open ro", "first", f"next {LAST}")


@pytest.mark.parametrize(("hint", "random"), [("none", False), ("own", True)])
def test_the_hint_is_lucenes(driver: Driver, scratch: Path, hint: str, random: bool) -> None:
    argv = [*driver.command, str(driver.data), hint]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdin
        # The file of the copy that comes last says that all before has been done.
        process.stdin.write(f"open ro\nget 1\nfirst\nnext 100\ncopy /tmp/copied-{hint}\n")
        process.stdin.flush()
        copied = scratch / f"copied-{hint}"
        assert wait_until(lambda: list(copied.glob("segments_*")) or process.poll() is not None)
        assert process.poll() is None
        maps = Path(f"/proc/{process.pid}/smaps").read_text()
        process.stdin.close()
    found = re.findall(r"/data/_\S+\n(?:\w+: .*\n)*?VmFlags: (.*)\n", maps)
    assert found
    assert {"rr" in flags.split() for flags in found} == {random}
    assert not any("sr" in flags.split() for flags in found)


def test_what_is_made_is_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("mvn"):
        pytest.skip("Maven is not installed")
    before = lucene.programs()
    assert {path.name for path in before.iterdir()} == {"driver.jar", "lucene", "lucene-core.jar", "prepare.mk"}
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    again = lucene.programs()
    assert again.name == before.name
    assert digest_files(again.iterdir(), again) == digest_files(before.iterdir(), before)


def test_another_file_than_lucenes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maven is stood in for by a program that writes one."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mvn").write_text("#!/bin/sh\necho other >lucene-core.jar\n")
    (tmp_path / "bin/mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BuildError, match=r"lucene-core\.jar of version [\d.]+ is not the file that is known"):
        lucene.programs()


def test_a_machine_without_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    with pytest.raises(MissingTool, match="mvn is not installed; 'apt-get install maven' brings it"):
        lucene.programs()

# SPDX-License-Identifier: GPL-2.0-only
import json
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from foliolab.errors import SourceError
from foliolab.files import locked
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.held import held
from foliolab.kernel.name import parse_name
from foliolab.kernel.source import Source, sources
from tests.processes import wait_until


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))


def make_tree(place: Path, version: tuple[int, int, int] = (6, 12, 99)) -> Path:
    place.mkdir()
    major, minor, patch = version
    makefile = f"# SPDX-License-Identifier: GPL-2.0\nVERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = {patch}\n"
    (place / "Makefile").write_text(makefile)
    return place


def source_at(place: Path) -> Source:
    with held(parse_name(str(place))) as source:
        return source


def test_tree_is_mirrored_and_follows_its_changes(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    first = source_at(tree)
    assert (first.version, (first.tree / "Makefile").read_text()) == ("6.12.99", (tree / "Makefile").read_text())
    assert source_at(tree) == first
    (tree / "mm.c").write_text("int x;\n")
    second = source_at(tree)
    assert second.identity != first.identity
    assert (second.tree / "mm.c").read_text() == "int x;\n"


def test_tarball_is_unpacked_once(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux-6.12.99")
    tarball = tmp_path / "linux.tar.xz"
    with tarfile.open(tarball, "w:xz") as archive:
        archive.add(tree, "linux-6.12.99")
    source = source_at(tarball)
    assert source.version == "6.12.99"
    stamp = source.tree.stat().st_ctime_ns
    assert source_at(tarball) == source
    assert source.tree.stat().st_ctime_ns == stamp


def test_debian_package_stays_the_base(source: Source) -> None:
    assert source.version.startswith("6.12.")
    assert (source.tree / "mm/filemap.c").is_file()


def test_a_package_that_another_process_fetches_is_fetched_once(capsys: pytest.CaptureFixture[str]) -> None:
    note = sources() / "debian-0.1.json"
    with ThreadPoolExecutor() as another, locked(note.with_suffix(".lock")):
        found = another.submit(from_debian, "0.1")
        assert wait_until(lambda: "waiting for another process to fetch linux-source-0.1" in capsys.readouterr().err)
        (sources() / "one").mkdir()
        tree = make_tree(sources() / "one/pristine")
        note.write_text(json.dumps({"home": "one"}))
    assert found.result().tree == tree


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda place: place.mkdir() or place, "it has no Makefile"),
        (lambda place: place.write_bytes(b"junk") and place, "does not look like a tar"),
    ],
    ids=["empty", "junk"],
)
def test_unusable_source(tmp_path: Path, make: object, sentence: str) -> None:
    assert callable(make)
    with pytest.raises(SourceError, match=sentence):
        source_at(make(tmp_path / "linux"))

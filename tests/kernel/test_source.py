# SPDX-License-Identifier: GPL-2.0-only
import tarfile
from pathlib import Path

import pytest

from foliolab.errors import SourceError
from foliolab.kernel.source import Source, obtain
from foliolab.progress import Reporter


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))


def make_tree(place: Path, version: tuple[int, int, int] = (6, 12, 99)) -> Path:
    place.mkdir()
    major, minor, patch = version
    makefile = f"# SPDX-License-Identifier: GPL-2.0\nVERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = {patch}\n"
    (place / "Makefile").write_text(makefile)
    return place


def test_tree_is_mirrored_and_follows_its_changes(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    first = obtain(tree, Reporter())
    assert (first.version, (first.tree / "Makefile").read_text()) == ("6.12.99", (tree / "Makefile").read_text())
    assert obtain(tree, Reporter()) == first
    (tree / "mm.c").write_text("int x;\n")
    second = obtain(tree, Reporter())
    assert second.identity != first.identity
    assert (second.tree / "mm.c").read_text() == "int x;\n"


def test_tarball_is_unpacked_once(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux-6.12.99")
    tarball = tmp_path / "linux.tar.xz"
    with tarfile.open(tarball, "w:xz") as archive:
        archive.add(tree, "linux-6.12.99")
    source = obtain(tarball, Reporter())
    assert source.version == "6.12.99"
    stamp = source.tree.stat().st_ctime_ns
    assert obtain(tarball, Reporter()) == source
    assert source.tree.stat().st_ctime_ns == stamp


def test_debian_package_stays_the_base(source: Source) -> None:
    assert source.version.startswith("6.12.")
    assert (source.tree / "mm/filemap.c").is_file()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda place: place, "There is no kernel tree or tarball"),
        (lambda place: place.mkdir() or place, "it has no Makefile"),
        (lambda place: make_tree(place, (6, 11, 1)), r"is Linux 6\.11\.1; the hooks are made for 6\.12"),
        (lambda place: place.write_bytes(b"junk") and place, "does not look like a tar"),
    ],
    ids=["absent", "empty", "old", "junk"],
)
def test_unusable_source(tmp_path: Path, make: object, sentence: str) -> None:
    assert callable(make)
    with pytest.raises(SourceError, match=sentence):
        obtain(make(tmp_path / "linux"), Reporter())

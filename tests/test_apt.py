# SPDX-License-Identifier: GPL-2.0-only
"""Fetching with the real apt, from a mirror of our own."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foliolab import apt, process
from foliolab.apt import Downloads, Package, fetch
from foliolab.arch import ARM64, X86_64, Architecture
from foliolab.errors import DiskFull, LabError, MissingTool
from foliolab.files import digest
from foliolab.process import find
from tests.debian import Mirror, mirror_of_releases, trust_everybody

KEYRING = apt.KEYRING


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    made = Mirror(tmp_path / "mirror")
    for architecture in ("amd64", "arm64"):
        made.add("app", "1.0", architecture, "Depends: lib (>= 2), data", "Recommends: more")
        made.add("lib", "2.0", architecture)
        made.add("more", "1", architecture)
    made.add("data", "1:3.0-1", "all")
    monkeypatch.setenv("APT_CONFIG", str(made.configuration))
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "the cache"))
    return made


def names(packages: tuple[Package, ...]) -> list[str]:
    return [package.file.name for package in packages]


@pytest.mark.parametrize("arch", [X86_64, ARM64], ids=lambda arch: arch.name)
def test_a_package_comes_with_all_that_it_depends_on(mirror: Mirror, arch: Architecture) -> None:
    found = fetch(arch, ["app"])
    debian = {"x86_64": "amd64", "arm64": "arm64"}[arch.name]
    assert names(found) == [f"app_1.0_{debian}.deb", "data_1%3a3.0-1_all.deb", f"lib_2.0_{debian}.deb"]
    for package in found:
        assert package.hash == hashlib.sha256(package.file.read_bytes()).hexdigest()


def test_what_is_installed_here_does_not_matter(mirror: Mirror) -> None:
    """dpkg itself is on every Debian, and has to come all the same."""
    mirror.add("dpkg", "9999", "amd64")
    mirror.add("wants-dpkg", "1", "amd64", "Depends: dpkg")
    assert names(fetch(X86_64, ["wants-dpkg"])) == ["dpkg_9999_amd64.deb", "wants-dpkg_1_amd64.deb"]
    assert not Path("/dev/lock-frontend").exists()


def test_what_was_fetched_stays_though_the_mirror_goes_on(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fetch(X86_64, ["app", "lib"])
    mirror.add("lib", "2.1", "amd64")
    monkeypatch.setenv("PATH", "/nowhere")
    assert fetch(X86_64, ["lib", "app", "lib"]) == before


def test_a_lost_file_is_fetched_again(mirror: Mirror) -> None:
    before = fetch(X86_64, ["app"])
    before[0].file.unlink()
    assert fetch(X86_64, ["app"]) == before


def test_what_a_killed_fetch_has_left_is_not_taken(mirror: Mirror) -> None:
    found = fetch(X86_64, ["app"])
    home = found[0].file.parent.parent
    (home / "packages.json").unlink()
    (home / "archives/app_0.9_amd64.deb").write_bytes(b"of before the mirror went on")
    found[1].file.write_bytes(found[1].file.read_bytes()[:100])
    assert fetch(X86_64, ["app"]) == found


def test_an_unknown_package_is_named(mirror: Mirror) -> None:
    sentence = r"apt cannot fetch app, nosuch for arm64: Unable to locate package nosuch"
    with pytest.raises(LabError, match=sentence):
        fetch(ARM64, ["nosuch", "app"])


def test_a_mirror_that_is_not_there_is_named(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "mirror/sources.list").write_text("deb [trusted=yes] http://127.0.0.1:9/debian ./\n")
    with pytest.raises(LabError, match=r"Unable to locate package app \(before that: Failed to fetch http://127"):
        fetch(X86_64, ["app"])


def test_a_damaged_package_is_not_taken(mirror: Mirror) -> None:
    package = mirror.add("bad", "1", "amd64")
    package.write_bytes(package.read_bytes()[:-1] + b"x")
    with pytest.raises(LabError, match=r"apt cannot fetch bad for x86_64: .*Hash Sum mismatch"):
        fetch(X86_64, ["bad"])


def test_a_machine_without_apt(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingTool, match="this machine has no apt-get; use Debian, or a distribution made from it"):
        fetch(X86_64, ["app"])


FETCH = """
from foliolab.arch import X86_64
from foliolab.apt import fetch
try:
    fetch(X86_64, ["app", "big"])
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_full_disk_is_named(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add("big", "1", "amd64", content=os.urandom(4 << 20))
    (tmp_path / "small").mkdir()
    script = f'mount -t tmpfs -o size=2m none {tmp_path}/small && exec "$@"'
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", FETCH]
    environment = os.environ | {"FOLIOLAB_CACHE": str(tmp_path / "small/cache")}
    done = subprocess.run(argv, env=environment, capture_output=True, check=False)
    sentence = f"{DiskFull.__name__} No space left on the disk that holds {tmp_path}/small"
    assert done.stdout.decode().startswith(sentence), done


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror with two releases, of which this machine uses the older, and two with less; nobody has signed them."""
    packages = Mirror(tmp_path / "packages")
    debs = {suite: packages.add("app", version, "amd64") for suite, version in (("old", "1"), ("new", "2"))}
    mirror = tmp_path / "mirror"
    mirror_of_releases(mirror, {suite: [deb] for suite, deb in debs.items()})
    behind = tmp_path / "behind"
    shutil.copytree(mirror, behind)
    shutil.rmtree(behind / "dists/new")
    keyring = tmp_path / "keyring.gpg"
    keyring.touch()
    monkeypatch.setattr(apt, "KEYRING", str(keyring))
    sources = tmp_path / "sources.list"
    lines = [f"copy:{behind} old main", f"copy:{mirror} old main", f"copy:{tmp_path}/packages/pool ./"]
    sources.write_text("".join(f"deb [trusted=yes] {line}\n" for line in lines))
    configuration = tmp_path / "apt.conf"
    configuration.write_text(f'Dir::Etc::SourceList "{sources}";\nDir::Etc::SourceParts "/dev/null";\n')
    monkeypatch.setenv("APT_CONFIG", str(configuration))
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "the cache"))
    return configuration


def test_packages_of_another_release(releases: Path) -> None:
    trust_everybody(releases)
    (newer,) = fetch(X86_64, ["app"], suite="new")
    (older,) = fetch(X86_64, ["app"], suite="old")
    assert (older.file.name, newer.file.name) == ("app_1_amd64.deb", "app_2_amd64.deb")
    assert newer.file.parent.parent.name.startswith("x86_64-new-")
    assert fetch(X86_64, ["app"], suite="new") == (newer,)


def test_one_package_is_of_the_first_release_that_has_it(releases: Path, tmp_path: Path) -> None:
    trust_everybody(releases)
    for suites, version in ((("newer", "old", "new"), 1), (("newer", "new", "old"), 2)):
        directory = tmp_path / f"for {version}"
        directory.mkdir()
        with Downloads(directory, suites) as packages:
            assert packages.bring("app", "app") == directory / f"app_{version}_amd64.deb"
        assert [path.name for path in directory.iterdir()] == [f"app_{version}_amd64.deb"]


def test_one_package_that_no_release_has(releases: Path, tmp_path: Path) -> None:
    trust_everybody(releases)
    with (
        Downloads(tmp_path, ("", "new")) as packages,
        pytest.raises(LabError, match="Debian has no package nosuch in any of these suites: this machine's own, new"),
    ):
        packages.bring("nosuch", "nosuch")


def test_a_release_that_debian_has_not_signed_is_not_taken(releases: Path) -> None:
    with pytest.raises(LabError, match=r"apt cannot fetch app for x86_64 from new: Unable to locate package app \(bef"):
        fetch(X86_64, ["app"], suite="new")


def test_a_release_that_no_mirror_has(releases: Path) -> None:
    trust_everybody(releases)
    with pytest.raises(LabError, match=r"apt cannot fetch app for x86_64 from newer: Unable to locate package app"):
        fetch(X86_64, ["app"], suite="newer")


def test_another_release_needs_debians_keys(releases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "KEYRING", KEYRING)
    monkeypatch.setattr(process, "find", lambda name: None if name == KEYRING else find(name))
    with pytest.raises(MissingTool, match="'apt-get install debian-archive-keyring' brings it"):
        fetch(X86_64, ["app"], suite="new")


def test_a_machine_with_no_mirror_that_has_releases(mirror: Mirror) -> None:
    with pytest.raises(LabError, match="apt cannot fetch app for x86_64 from new: this machine has no mirror of Deb"):
        fetch(X86_64, ["app"], suite="new")


def test_what_is_fetched_without_a_release_stays_where_it_was(mirror: Mirror) -> None:
    """Or every machine would fetch all again, and make all disks anew."""
    home = fetch(X86_64, ["app"])[0].file.parent.parent
    assert home.name == f"x86_64-{digest(['app'])}"

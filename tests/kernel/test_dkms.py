# SPDX-License-Identifier: GPL-2.0-only
"""The module's Debian package, and DKMS building it in trees of its own."""

import subprocess
from pathlib import Path

import pytest

from foliolab.arch import NATIVE, X86_64
from foliolab.cli.main import main
from foliolab.kernel import module
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.module import headers
from foliolab.packages import Downloads
from foliolab.progress import Reporter


def unpacked(package: Path, place: Path) -> Path:
    subprocess.run(["dpkg-deb", "--extract", package, place], check=True)
    return place


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return module.package(tmp_path_factory.mktemp("package"))


def test_the_package_is_complete(package: Path, tmp_path: Path) -> None:
    name, version = module.name_and_version()
    assert package.name == f"foliolab-readahead-dkms_{version}_all.deb"
    there = unpacked(package, tmp_path) / f"usr/src/{name}-{version}"
    assert {str(file.relative_to(there)) for file in there.rglob("*") if file.is_file()} == set(module.sources())
    for file, ours in module.sources().items():
        assert (there / file).read_bytes() == ours.read_bytes()
    subprocess.run(["dpkg-deb", "--control", package, tmp_path / "control"], check=True)
    assert "\nDepends: dkms\n" in (tmp_path / "control/control").read_text()
    for script in ("postinst", "prerm"):
        assert (tmp_path / "control" / script).stat().st_mode & 0o111
        subprocess.run(["sh", "-n", tmp_path / "control" / script], check=True)


def test_the_same_sources_make_the_same_package(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["module", "package", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / package.name}\n"
    assert (tmp_path / package.name).read_bytes() == package.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == [package.name]


def test_it_takes_a_directory_that_exists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["module", "package", str(tmp_path / "nowhere")]) == 2
    assert "There is no directory" in capsys.readouterr().err


@pytest.mark.boot
@pytest.mark.skipif(NATIVE is not X86_64, reason="the module was tried on x86_64 only")
def test_dkms_builds_it(package: Path, tmp_path: Path, stock_kernel: BuiltKernel) -> None:
    found = headers(stock_kernel.release, NATIVE, Reporter())
    # As a machine has them in one directory where these headers are installed.
    place = tmp_path / "headers"
    place.mkdir()
    command = " ".join(module.make_command(found, NATIVE.compiler))
    (place / "Makefile").write_text(f"%:\n\t{command} M=$(M) $@\n")
    for part in (".config", "include"):
        (place / part).symlink_to(found.build / part)
    with Downloads(tmp_path, ("",)) as packages:
        program = unpacked(packages.bring("dkms", "dkms"), tmp_path / "dkms") / "usr/sbin/dkms"
    name, version = module.name_and_version()
    for directory in ("tree", "modules"):
        (tmp_path / directory).mkdir()
    trees = ["--dkmstree", str(tmp_path / "tree"), "--installtree", str(tmp_path / "modules")]
    trees += ["--sourcetree", str(unpacked(package, tmp_path / "package") / "usr/src")]
    which = ["-m", name, "-v", version]
    subprocess.run(["bash", program, "add", *which, *trees], check=True)
    build_it = [*which, "-k", stock_kernel.release, "-a", NATIVE.name, "--kernelsourcedir", str(place), *trees]
    done = subprocess.run(["bash", program, "build", *build_it], check=False)
    logs = [path.read_text() for path in (tmp_path / "tree").rglob("make.log")]
    assert done.returncode == 0, logs
    (built,) = (tmp_path / "tree").rglob("module/*.ko*")
    assert built.name.partition(".")[0] == module.NAME
    assert f"vermagic={stock_kernel.release} ".encode() in built.read_bytes()

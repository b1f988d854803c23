# SPDX-License-Identifier: GPL-2.0-only
"""The module's packages, and DKMS building it in trees of its own."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from foliolab.apt import Downloads, unpack
from foliolab.arch import ARM64, NATIVE, X86_64
from foliolab.cli.main import main
from foliolab.files import MODULE, cache_directory, made_once, sha256
from foliolab.kernel import module, module_package
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.debian_headers import headers, make_command

NAME, VERSION = module.name_and_version()
WHICH = ("-m", NAME, "-v", VERSION)
SOURCES = "ae5cd543ed73694f"
"""Hash of what this version is made of."""
SKIPPED = 77
"""What DKMS ends with where it is not to build; scripts of packages go on then."""


def unpacked(package: Path, place: Path) -> Path:
    subprocess.run(["dpkg-deb", "--extract", package, place], check=True)
    return place


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return module_package.build_deb(tmp_path_factory.mktemp("package"))


def test_the_package_is_complete(package: Path, tmp_path: Path) -> None:
    assert package.name == f"foliolab-readahead-dkms_{VERSION}_all.deb"
    there = unpacked(package, tmp_path) / f"usr/src/{NAME}-{VERSION}"
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


def test_rpms_package_has_the_same_files(package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["module", "package", "--rpm", str(tmp_path)]) == 0
    made = tmp_path / f"{module_package.PACKAGE}-{VERSION}-1.noarch.rpm"
    assert capsys.readouterr().out == f"{made}\n"
    assert list(tmp_path.iterdir()) == [made]

    def asked(*what: str) -> str:
        return subprocess.check_output(["rpm", "--query", "--package", made, *what], text=True)

    tree = unpacked(package, tmp_path / "deb")
    wanted = {f"/{file.relative_to(tree)}": sha256(file) for file in tree.rglob("*") if file.is_file()}
    lines = asked("--queryformat", "[%{FILENAMES} %{FILEMODES:octal} %{FILEDIGESTS}\\n]").splitlines()
    entries = [line.split() for line in lines]
    assert {entry[0]: entry[2] for entry in entries if len(entry) == 3} == wanted  # directories have no digest
    assert {int(entry[1], 8) for entry in entries} == {0o100644, 0o40755}
    assert "\ndkms\n" in f"\n{asked('--requires')}"
    scripts = asked("--scripts")
    for verb in ("add", "remove"):
        assert f"dkms {verb} -m {NAME} -v {VERSION}" in scripts


def test_it_takes_a_directory_that_exists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["module", "package", str(tmp_path / "nowhere")]) == 2
    assert "There is no directory" in capsys.readouterr().err


def test_the_version_grows_with_the_sources() -> None:
    assert f'MODULE_VERSION("{VERSION}");' in (MODULE / "hooks.c").read_text()
    assert module.code_hash() == SOURCES, "The sources differ: raise both versions, and write their new hash here."


def dkms(suite: str) -> Path:
    """Debian's program as it is in a release, from the cache."""

    def make(place: Path) -> None:
        with Downloads(place, (suite,)) as packages:
            unpack(packages.bring("dkms", "dkms"), place)

    return made_once(cache_directory() / "packages", f"dkms-{suite}", make) / "usr/sbin/dkms"


@dataclass(frozen=True)
class Dkms:
    """It, with trees of its own, to which the module was added."""

    program: Path
    place: Path
    headers: Path
    """Taken for those of any kernel."""

    def run(
        self, verb: str, *arguments: str, release: str = "", arch: str = NATIVE.name
    ) -> subprocess.CompletedProcess[str]:
        trees = {"dkmstree": "tree", "installtree": "modules", "sourcetree": "package/usr/src"}
        argv: list[str | Path] = ["bash", self.program, verb, *arguments]
        argv += [word for option, tree in trees.items() for word in (f"--{option}", self.place / tree)]
        if release:
            argv += ["-k", release, "-a", arch, "--kernelsourcedir", self.headers]
        return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.fixture(params=["bookworm", "trixie"])
def added(request: pytest.FixtureRequest, package: Path, tmp_path: Path, stock_kernel: BuiltKernel) -> Dkms:
    found = headers(stock_kernel.release, NATIVE)
    # As a machine has them in one directory where these headers are installed.
    place = tmp_path / "headers"
    place.mkdir()
    command = " ".join(make_command(found, NATIVE.compiler))
    (place / "Makefile").write_text(f"%:\n\t{command} M=$(M) $@\n")
    (place / "include").symlink_to(found.build / "include")
    (place / ".config").write_text((found.build / ".config").read_text())
    for directory in ("tree", "modules"):
        (tmp_path / directory).mkdir()
    unpacked(package, tmp_path / "package")
    tool = Dkms(dkms(request.param), tmp_path, place)
    done = tool.run("add", *WHICH)
    assert done.returncode == 0, done.stderr
    return tool


@pytest.mark.boot
@pytest.mark.skipif(NATIVE is not X86_64, reason="the module was tried on x86_64 only")
def test_dkms_builds_it_and_skips_kernels_on_which_it_was_not_tried(added: Dkms, stock_kernel: BuiltKernel) -> None:
    release = stock_kernel.release
    done = added.run("build", *WHICH, release=release)
    assert done.returncode == 0, [path.read_text() for path in added.place.rglob("make.log")]
    (built,) = (added.place / "tree").rglob("module/*.ko*")
    assert built.name.partition(".")[0] == module.NAME
    content = built.read_bytes()
    assert f"vermagic={release} ".encode() in content
    assert f"\0version={VERSION}\0".encode() in content

    # What a kernel's update calls succeeds, and says why nothing is built.
    for other in ("9.9.9-amd64", "6.120.1-amd64", "6.12.118+deb13-rt-amd64", "6.12.118+deb13-arm64"):
        arch = ARM64.machine if other.endswith("arm64") else X86_64.name
        done = added.run("autoinstall", release=other, arch=arch)
        assert done.returncode == 0, (other, done.stdout, done.stderr)
        assert f"is skipped: it was not tried on kernels such as {other}, or on" in done.stderr
    for other, arch in (("9.9.9-amd64", X86_64.name), ("6.12.118+deb13-arm64", ARM64.machine)):
        done = added.run("build", *WHICH, release=other, arch=arch)
        assert done.returncode == SKIPPED
        assert "BUILD_EXCLUSIVE directive" in done.stderr
    # Whatever a real-time kernel is called.
    config = added.headers / ".config"
    config.write_text(f"{config.read_text()}CONFIG_PREEMPT_RT=y\n")
    assert added.run("build", *WHICH, "--config", str(config), release="6.12.1").returncode == SKIPPED
    done = added.run("autoinstall", release="6.12.1")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "is skipped: it was not tried on kernels such as 6.12.1, or on" in done.stderr
    assert [path.name for path in (added.place / "tree").rglob("module/*.ko*")] == [built.name]

# SPDX-License-Identifier: GPL-2.0-only
"""The tools run on a server as it is: Python 3.9 and later, its standard library, one file, and no network."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliohost.devices import device_of
from foliohost.windows import set_device
from foliolab.files import REPOSITORY
from tests.host import small_programs
from tests.host.test_large import ahead_of_others
from tests.host.toucher import drop
from tests.host.tracing import obstacle

HOST = REPOSITORY / "host"
SOURCES = [HOST / "build", *sorted(HOST.rglob("*.py"))]
MINORS = range(9, 16)
TRACE = REPOSITORY / "traces/lmdb-uniform.trace"


def python(minor: int) -> str | None:
    """Python 3 of that minor version, as it is in the path or as pyenv keeps it; None without one that runs."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    named = [shutil.which(f"python3.{minor}"), *map(str, versions.glob(f"3.{minor}.*/bin/python3"))]
    for found in filter(None, named):
        if not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
            return found
    return None


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tools as the one file that is copied to servers."""
    place = tmp_path_factory.mktemp("built") / "foliolab-host"
    subprocess.run([sys.executable, str(HOST / "build"), str(place)], check=True)
    return place


@pytest.mark.parametrize("module", SOURCES, ids=lambda path: path.name)
def test_sources_are_of_python_3_9_and_import_its_library_alone(module: Path) -> None:
    tree = ast.parse(module.read_bytes(), feature_version=(3, 9))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).partition(".")[0])
    assert names - {*sys.stdlib_module_names} <= {"foliohost"}
    assert names & {"tomllib", "distutils", "imp", "asynchat", "asyncore", "smtpd"} == set()


@pytest.mark.parametrize("minor", MINORS)
def test_it_runs_alone(minor: int, file: Path, tmp_path: Path) -> None:
    """In an empty directory, without what anybody has installed, and with an empty environment."""
    found = python(minor)
    if not found:
        pytest.skip(f"there is no Python 3.{minor} here")

    def run(*words: str, status: int = 0) -> str:
        argv = [found, "-I", "-S", "-W", "error", str(file), *words]
        environment = {"FOLIOLAB_STATE": str(tmp_path / "state"), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout or done.stderr

    assert run("--version") == "foliolab-host 0.1.0\n"
    assert "usage: " in run("diagnose", "--help")
    assert json.loads(run("diagnose", "--json", "--", "sh", "-c", "exit 7", status=7))["verdict"] == "nothing-wrong"
    assert json.loads(run("diagnose", "--json", "--file", str(file)))["verdict"] == "not-mapped"
    assert json.loads(run("cure", "show", "--json")) == {"cures": []}
    assert run("heatmap", str(TRACE)).count("│") == 20
    assert "too small" in run("probe", str(file), status=45)
    assert "Name a program" in run("record", "-o", "t", status=2)
    assert list(tmp_path.iterdir()) == []
    if not obstacle():
        run("record", "-o", "trace", "--reads", "reads", "--", "sh", "-c", "exit 3", status=3)
        assert run("heatmap", "trace").count("│") == 20


@pytest.fixture(scope="module")
def quiet_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file of 96 MiB on a loop device, with windows of 128 KiB."""
    image, place = tmp_path_factory.mktemp("image") / "image", tmp_path_factory.mktemp("disk")
    with image.open("wb") as stream:
        stream.truncate(128 << 20)
    for argv in (["/sbin/mke2fs", "-q", "-t", "ext4", str(image)], ["mount", "-o", "loop", str(image), str(place)]):
        if subprocess.run(argv, capture_output=True, check=False).returncode:
            pytest.skip("mounting a loop device takes root")
    (place / "file").write_bytes(os.urandom(96 << 20))
    set_device(device_of(place / "file").attribute, 128)
    os.sync()
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


LOWEST = next(filter(python, MINORS), 0)
VERDICTS = {
    "random": "reads-too-much",
    "sequential": "nothing-wrong",
    "pread": "nothing-wrong",
    "openers": "reads-too-much",
    "fits": "fits-in-memory",
}


@pytest.mark.parametrize("minor", MINORS)
def test_small_programs_are_judged_by_every_python(minor: int, file: Path, quiet_disk: Path, tmp_path: Path) -> None:
    """Of the lowest Python alone, unless FOLIOLAB_PYTHONS is "all"."""
    found = python(minor)
    if not found or (minor != LOWEST and os.environ.get("FOLIOLAB_PYTHONS") != "all"):
        pytest.skip(f"Python 3.{minor} is not here, or was not asked for")
    verdicts = {}
    for name in VERDICTS:
        drop(quiet_disk / "file")
        program = [found, small_programs.__file__, name, str(quiet_disk / "file")]
        argv = [found, "-I", "-S", "-W", "error", str(file), "diagnose", "--json", "--no-probe", "--", *program]
        environment = {"FOLIOLAB_STATE": str(tmp_path / "state"), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        # Looks that come late on a busy machine miss what a program did at its end.
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, preexec_fn=ahead_of_others, check=False
        )
        assert done.returncode == 0, done.stderr
        verdicts[name] = json.loads(done.stdout)["verdict"]
    print(minor, verdicts)
    assert verdicts == VERDICTS


def test_it_starts_at_once(file: Path, tmp_path: Path) -> None:
    """In processor time, which other work does not add to."""
    before = os.times()
    for option in ("--help", "--version"):
        subprocess.run([sys.executable, "-I", "-S", str(file), option], cwd=tmp_path, stdout=subprocess.DEVNULL)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent / 2 < 0.2


def test_equal_sources_make_equal_files(file: Path, tmp_path: Path) -> None:
    shutil.copytree(HOST, tmp_path / "host", ignore=shutil.ignore_patterns("__pycache__"))
    for path in tmp_path.rglob("*"):
        os.utime(path, (1, 1))
    subprocess.run([sys.executable, str(tmp_path / "host/build"), str(tmp_path / "again")], check=True)
    assert (tmp_path / "again").read_bytes() == file.read_bytes()


def test_the_lab_hands_over_to_it_and_sets_nothing_up(tmp_path: Path) -> None:
    """With a Python that has no venv, no right to install anything, and a checkout that nothing was made in."""
    shutil.copytree(HOST, tmp_path / "host", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("lab", "packages.txt"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONPATH", None)
    before = sorted(tmp_path.rglob("*"))
    for words, told in (
        (["diagnose", "--", "true"], "Nothing wrong: "),
        (["diagnose", "--help"], "example: ./lab diagnose --pid"),
        (["diagnose", "--", "sh", "-c", "echo path=$PYTHONPATH."], "path=."),
        (["cure", "undo"], "Nothing is applied."),
        (["probe", "/no/such"], "lab: There is no /no/such."),
        (["trace", "record", "--live", "-o", "t"], "lab: Name a program, or a process by --pid."),
        (["trace", "record", "-o", "t", "--live", "--help"], "usage: ./lab record"),
    ):
        settings = environment | {"FOLIOLAB_STATE": str(tmp_path / "none")}
        done = subprocess.run(
            ["./lab", *words], cwd=tmp_path, env=settings, capture_output=True, text=True, check=False
        )
        assert told in done.stdout + done.stderr
    shutil.rmtree(tmp_path / "none")
    assert sorted(tmp_path.rglob("*")) == before


def test_an_old_python_is_told_of(tmp_path: Path) -> None:
    source = (HOST / "foliohost/__main__.py").read_text()
    text = source.replace("import sys\n", "import sys\nsys.version_info = (3, 6, 8, 'final', 0)\n", 1)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "foliolab-host: Python 3.9 is needed, and this is 3.6.\n")

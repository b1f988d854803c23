# SPDX-License-Identifier: GPL-2.0-only
"""The tools run on a server as it is: Python 3.9 and later, its standard library, one file, and no network."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foliohost.devices import device_of
from foliohost.trace import read_trace
from foliolab.files import REPOSITORY
from tests.host import toucher
from tests.host.alone import HOST, Tools, file, judge_all
from tests.host.conftest import cold, quiet_disk
from tests.host.pythons import MINORS, chosen_for_long_tests, needed_python
from tests.host.tracing import here

__all__ = ["cold", "file", "quiet_disk"]

SOURCES = [HOST / "build", *sorted(HOST.rglob("*.py"))]
TRACE = REPOSITORY / "traces/lmdb-uniform.trace"


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


@pytest.fixture(params=MINORS)
def tools(request: pytest.FixtureRequest, file: Path, tmp_path: Path) -> Tools:
    return Tools(request.param, needed_python(request.param), file, tmp_path)


def test_it_runs_alone(tools: Tools) -> None:
    run, file = tools.run, str(tools.file)
    assert run("--version") == "foliolab-host 0.1.0\n"
    assert "usage: " in run("--help")
    assert "usage: " in run("diagnose", "--help")
    assert json.loads(run("diagnose", "--json", "--", "sh", "-c", "exit 7", status=7))["verdict"] == "nothing-wrong"
    assert json.loads(run("diagnose", "--json", "--file", file))["verdict"] == "not-mapped"
    assert json.loads(run("cure", "show", "--json")) == {"cures": []}
    assert run("heatmap", str(TRACE)).count("│") == 20
    assert "too small" in run("probe", file, status=45)
    assert "Name a program" in run("record", "-o", "t", status=2)
    assert list(tools.place.iterdir()) == []


def test_it_writes_the_same_file_again(tools: Tools) -> None:
    argv = [tools.python, "-B", "-W", "error", str(HOST / "build"), "again"]
    subprocess.run(argv, cwd=tools.place, check=True)
    assert (tools.place / "again").read_bytes() == tools.file.read_bytes()


def test_small_programs_are_judged_by_every_python(tools: Tools, quiet_disk: Path) -> None:
    """Of those chosen for long tests."""
    if not chosen_for_long_tests(tools.minor):
        pytest.skip(f"FOLIOLAB_PYTHONS=all tries Python 3.{tools.minor} as well")
    judge_all(tools, quiet_disk / "file")
    assert list(tools.place.iterdir()) == []


def test_windows_are_set_and_put_back_by_every_python(tools: Tools, quiet_disk: Path) -> None:
    path = quiet_disk / "file"
    device = device_of(path)
    with path.open("rb"):
        for choice in ("--file", "--device-of"):
            assert "128 -> 64 KiB" in tools.run("cure", "apply", choice, str(path), "--read-ahead-kb", "64")
        assert device.read_ahead_kb == 64
        assert tools.run("cure", "show").count("holds") == 2
        assert tools.run("cure", "undo").count("back to 128 KiB") == 2
    assert device.read_ahead_kb == 128
    assert tools.run("cure", "undo") == "Nothing is applied.\n"


def test_a_disk_is_measured_by_every_python(tools: Tools, quiet_disk: Path) -> None:
    found = json.loads(tools.run("probe", str(quiet_disk / "file"), "--seconds", "0.3", "--json"))
    assert found["request_us"] >= 0 and found["page_us"] >= 0, "a busy disk can give either as nothing"
    assert found["request_us"] + found["page_us"] > 0
    assert found["request_kb"] >= 1


@here
def test_touches_are_recorded_by_every_python(tools: Tools, cold: Path) -> None:
    program = f"echo page 7 | {tools.python} {toucher.__file__} {cold}; exit 3"
    words = ["-o", "trace", "--reads", "reads", "--file", str(cold)]
    tools.run("record", *words, "--", "sh", "-c", program, status=3)
    for name in ("trace", "reads"):
        assert 7 in read_trace(tools.place / name).page_of
        assert tools.run("heatmap", name).count("│") == 20


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
        (["record", "-o", "t"], "lab: Name a program, or a process by --pid."),
        (["record", "--help"], "usage: ./lab record"),
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

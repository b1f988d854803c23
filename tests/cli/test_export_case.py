# SPDX-License-Identifier: GPL-2.0-only
"""What ``export-case`` writes, compiled and run on this machine by somebody who is not root."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.cli.main import main
from foliolab.errors import BuildError
from foliolab.vm.image import guest_programs
from tests.guest.program import PAGE, run
from tests.processes import wait_until
from tests.small import small_experiment
from tests.tmpfs import tmpfs

NOBODY = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
TITLES = ["MiB needed", "MiB read", "requests", "major faults", "seconds"]
CELL = ["--cell", "pattern=random"]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    return small_experiment(tmp_path)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of everybody's, on a disk."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        number = Path(directory).stat().st_dev
        if not Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").exists():
            pytest.skip("temporary files are on no disk here")
        yield Path(directory)


def exported(place: Path, *argv: str | Path) -> Path:
    """The script, with the C file beside it."""
    assert main(["export-case", *map(str, argv), "--output", str(place)]) == 0
    (script,) = place.glob("*.sh")
    return script


def left(place: Path) -> list[str]:
    return sorted(path.suffix for path in place.iterdir())


@pytest.mark.parametrize(
    ("name", "cell", "options"),
    [
        ("sparse-mmap", "pattern=random", ["--file", "data"]),
        ("access-patterns", "pattern=zipf", ["--file", "data", "--pattern", "zipf", "--count", "9"]),
        ("strangers", "reader=random,stranger=scan", ["--directory", ".", "--stranger", "scan", "--file_pages", "256"]),
        ("R1", "form=each", ["--file", "data", "--case", "openers", "--form", "each"]),
    ],
)
def test_the_c_file_is_the_program(
    place: Path, name: str, cell: str, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled as its comment says, it tells what the lab's own program tells."""
    file = exported(place, name, "--cell", cell).with_suffix(".c")
    monkeypatch.chdir(place)
    Path("data").write_bytes(bytes(4096 * PAGE))
    Path("5x256").mkdir()
    for number in range(5):
        Path(f"5x256/{number}").write_bytes(bytes(256 * PAGE))
    argv = ["-O2", "-pthread", "-static", "-Wall", "-Wextra", "-Werror", "-o", file.stem, file.name]
    process.run([process.tool(NATIVE.compiler), *argv], BuildError)
    mine = run(place / file.stem, *options)
    theirs = run(guest_programs(NATIVE)[mine["probe"]], *options)
    assert mine.keys() == theirs.keys() >= {"read_bytes", "read_requests", "major_faults", "seconds"}
    assert mine["floor_bytes"] == theirs["floor_bytes"]


@pytest.mark.parametrize("number", range(1, 11))
def test_every_report_can_be_exported(tmp_path: Path, number: int) -> None:
    script = exported(tmp_path, f"R{number}")
    assert script.name == f"R{number}.sh"
    memory = 1536 << 20 if number == 7 else 1 << 30  # as much as sixteen threads of it change
    assert f"memory={memory}\t# bytes" in script.read_text(), "as reported, and no eighth of it"


def test_the_same_case_is_the_same_bytes(tmp_path: Path, experiment: Path) -> None:
    argv = [str(experiment), *CELL, "--read-ahead-kb", "16,64"]
    script = exported(tmp_path, *argv)
    first = [file.read_bytes() for file in (script, script.with_suffix(".c"))]
    assert "windows='16 64'" in script.read_text()
    exported(tmp_path, *argv, "--force")
    assert [file.read_bytes() for file in (script, script.with_suffix(".c"))] == first


def test_a_script_runs_without_root_and_leaves_nothing(place: Path, experiment: Path) -> None:
    script = exported(place, experiment, *CELL)
    done = subprocess.run([*NOBODY, "sh", script, place], capture_output=True, text=True, check=True)
    (warning,) = done.stderr.splitlines()
    assert warning.startswith(f"{script}: without root, the window stays as it is, ")
    heading, *rows = done.stdout.splitlines()
    assert heading.split() == [
        "window",
        "setting",
        "MiB",
        "needed",
        "MiB",
        "read",
        "requests",
        "major",
        "faults",
        "seconds",
    ]
    assert [len(row) for row in rows] == [len(heading)] * 2
    stock, hinted = (row.replace(", ", ",").split() for row in rows)
    assert (stock[1], hinted[1]) == ("random", "random,MADV_RANDOM")
    assert float(stock[2]) == float(hinted[2]) == pytest.approx(3.2, abs=0.1)
    assert float(hinted[3]) >= float(hinted[2])
    assert int(hinted[4]) > 0 and int(hinted[5]) > 0
    assert left(place) == [".c", ".sh"]


def test_a_script_that_is_ended_takes_the_program_and_the_data_along(place: Path, experiment: Path) -> None:
    text = experiment.read_text()
    experiment.write_text(text.replace('{ pattern = "random" }', '{ pattern = "random", passes = 1000000000 }'))
    script = exported(place, experiment, *CELL)
    child = subprocess.Popen([*NOBODY, "sh", script, place], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: _running(place))
    child.send_signal(signal.SIGTERM)
    _, said = child.communicate()
    assert child.returncode == 130
    assert "failed" not in said
    assert not _running(place)
    assert left(place) == [".c", ".sh"]


def _running(place: Path) -> bool:
    """Whether the program that a script has compiled there is."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if entry.read_bytes().startswith(f"{place}/".encode()):
                return True
    return False


def test_a_script_says_what_it_lacks(place: Path, experiment: Path) -> None:
    script = exported(place, experiment, *CELL)
    with tmpfs(place / "memory", "size=1m,mode=777") as memory:
        for argv, words in (
            ([], "which directory has room for the data?"),
            ([memory], f"{memory} is on no block device whose reads are counted, as on tmpfs or btrfs."),
        ):
            done = subprocess.run([*NOBODY, "sh", script, *argv], capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{script}: {words}\n")
        assert list(memory.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["R99"], 10, "There is no experiment 'R99'"),
        (["sparse-mmap", "--cell", "pattern=no-such"], 12, "pattern=no-such"),
        (["sparse-mmap", "--scale", "no-such"], 2, "sparse-mmap has no scale 'no-such'"),
        (["sparse-mmap", "--read-ahead-kb", "many"], 2, "--read-ahead-kb takes numbers of KiB"),
        (["real-text"], 2, "which cannot be put into a C file"),
        (["sparse-mmap", "--output", "/no/such/place"], 2, "--output: /no/such/place is no directory."),
        (["sparse-mmap", "--output", "/dev/null/case.c"], 2, "--output: /dev/null is no directory."),
    ],
)
def test_wrong_request(argv: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export-case", *argv]) == status
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


def test_nothing_is_overwritten_unasked(tmp_path: Path, experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.c"
    file.with_suffix(".sh").write_text("mine")
    argv = ["export-case", str(experiment), *CELL, "--output", str(file)]
    assert main(argv) == 2
    assert capsys.readouterr().err == f"lab: {tmp_path}/mine.sh exists already; --force overwrites it.\n"
    assert not file.exists()
    assert main([*argv, "--force"]) == 0
    assert "-o mine mine.c" in file.read_text()
    assert "name=mine\n" in file.with_suffix(".sh").read_text()


def test_a_full_disk_is_told(tmp_path: Path, experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tmpfs(tmp_path / "full", "size=16k") as full:
        assert main(["export-case", str(experiment), *CELL, "--output", str(full)]) == 40
        assert capsys.readouterr().err == f"lab: No space left on the disk that holds {full}.\n"
        assert list(full.iterdir()) == []

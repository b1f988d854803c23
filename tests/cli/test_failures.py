# SPDX-License-Identifier: GPL-2.0-only
"""Every expected failure, through the real command line: one clear sentence and a status of its own."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliolab import errors
from foliolab.arch import NATIVE
from foliolab.errors import LabError
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.source import Source
from foliolab.process import package_of
from tests.cli.command import lab, sentence
from tests.git import git
from tests.small import small_experiment
from tests.tmpfs import tmpfs


@pytest.fixture
def results(tmp_path: Path) -> str:
    return str(tmp_path / "results")


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["measure", "no-such"], 10, "no experiment 'no-such'"),
        (["measure", "sparse-mmap", "--variant", "off,no-such"], 11, "no variant 'no-such'; known: unpatched, off"),
        (["measure", "sparse-mmap", "--cell", "pattern=no-such"], 12, "no-such"),
        (["exec", "--arch", "x86_64", "--page-size", "16k", "--", "./x"], 2, "x86_64 has no pages of 16k; it has 4k"),
        (["kernel", "build", "--arch", "x86_64", "--page-size", "16k"], 2, "x86_64 has no pages of 16k; it has 4k"),
        (["kernel", "build", "--kernel", "/no/such/tree"], 24, "no kernel tree or tarball at /no/such/tree"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_request(argv: list[str], status: int, words: str, results: str) -> None:
    done = lab(*argv, FOLIOLAB_RESULTS=results)
    assert words in sentence(done)
    assert done.returncode == status
    assert done.stdout == ""


def test_malformed_experiment(tmp_path: Path, results: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_text('question = "unfinished\n')
    done = lab("measure", str(file), FOLIOLAB_RESULTS=results)
    assert "broken.toml" in sentence(done)
    assert "line 1" in sentence(done)
    assert done.returncode == 13


def test_hook_that_does_not_apply(small_source: Source, tmp_path: Path) -> None:
    filemap = small_source.tree / "mm/filemap.c"
    filemap.write_text(filemap.read_text().replace("if (mmap_miss > MMAP_LOTSAMISS)", "if (mmap_miss > 7)"))
    done = lab("kernel", "build", "--kernel", f"{small_source.tree}+ours", FOLIOLAB_CACHE=str(tmp_path / "cache"))
    assert "miss-tracepoint.patch does not apply" in sentence(done)
    assert "of mm/filemap.c" in sentence(done)
    assert done.returncode == 21


def test_tree_that_cannot_be_configured(small_source: Source, tmp_path: Path) -> None:
    """A tree without most of its files fails to configure: a build failure, told by make's own words."""
    done = lab("kernel", "build", "--kernel", f"{small_source.tree}+ours", FOLIOLAB_CACHE=str(tmp_path / "cache"))
    assert re.match(r"Configuring \S+ lab \S+ failed: ", sentence(done))
    assert done.returncode == 23


@pytest.mark.parametrize(
    ("second", "status", "words"),
    [("debian:6.12+{patch}", 25, "does not apply to Linux 6.12"), ("{tree}@gone", 24, "has no ref 'gone'")],
)
def test_a_wrong_kernel_is_named_before_another_is_built(
    small_source: Source, tmp_path: Path, second: str, status: int, words: str
) -> None:
    """The first cannot even be configured, which would be told if it were built first."""
    patch = tmp_path / "wrong.patch"
    patch.write_text("--- a/mm/filemap.c\n+++ b/mm/filemap.c\n@@ -1,1 +1,1 @@\n-nothing of the sort\n+mine\n")
    tree = tmp_path / "repository"
    tree.mkdir()
    git(tree, "init", "--quiet")
    kernels = ["--kernel", str(small_source.tree), "--kernel", second.format(patch=patch, tree=tree)]
    for command in ("measure", "compare"):
        done = lab(command, "workloads", *kernels, FOLIOLAB_RESULTS=str(tmp_path / "results"))
        assert words in sentence(done)
        assert done.returncode == status


@pytest.fixture
def dirty(tmp_path: Path) -> Path:
    """A git tree of a kernel in which a file is new."""
    place = tmp_path / "linux"
    place.mkdir()
    (place / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n")
    git(place, "init", "--quiet")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message=Linux")
    (place / "new.c").touch()
    return place


def test_a_tree_with_changes_is_no_commit(dirty: Path, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    done = lab("kernel", "import", str(dirty), FOLIOLAB_CACHE=cache)
    words = "and only commits come back; commit them"
    assert sentence(done).startswith(f"{dirty} has changes that are not committed, {words}")
    assert done.returncode == 26
    git(dirty, "add", "--all")
    git(dirty, "commit", "--quiet", "--message=new")
    done = lab("kernel", "import", str(dirty), FOLIOLAB_CACHE=cache)
    assert "not committed" not in done.stderr
    assert done.returncode != 26


def test_with_a_ref_changes_are_left_out_aloud(dirty: Path, tmp_path: Path) -> None:
    done = lab("kernel", "import", f"{dirty}@HEAD", FOLIOLAB_CACHE=str(tmp_path / "cache"))
    assert f"What is not committed in {dirty} is left out." in " ".join(done.stderr.split())
    assert "has no commit of ours" in sentence(done)
    assert done.returncode == 25


@pytest.mark.parametrize("command", [["kselftest"], ["measure", "sparse-mmap", "--kernel", "patched"]])
def test_a_ref_is_looked_at_before_anything_is_fetched(command: list[str], dirty: Path, tmp_path: Path) -> None:
    places = {"FOLIOLAB_CACHE": str(tmp_path / "cache"), "FOLIOLAB_RESULTS": str(tmp_path / "results")}
    done = lab(*command, "--kernel", f"{dirty}@gone", **places)
    assert sentence(done) == f"{dirty} has no ref 'gone'."
    assert done.returncode == 24
    assert done.stdout == ""
    assert "Fetching" not in done.stderr


def test_a_file_that_is_no_tarball(tmp_path: Path) -> None:
    file = tmp_path / "linux.tar"
    file.write_text("hello\n")
    done = lab("kernel", "build", "--kernel", str(file), FOLIOLAB_CACHE=str(tmp_path / "cache"))
    assert sentence(done).startswith(f"{file} is no tarball of a kernel: This does not look like a tar archive")
    assert done.returncode == 20


@pytest.fixture
def path_without_qemu(tmp_path: Path) -> str:
    """A PATH that holds everything but QEMU."""
    place = tmp_path / "bin"
    place.mkdir()
    for directory in os.environ["PATH"].split(":"):
        for program in Path(directory).glob("*"):
            link = place / program.name
            if not program.name.startswith("qemu-") and not link.exists():
                link.symlink_to(program)
    return str(place)


def test_no_qemu(path_without_qemu: str, results: str) -> None:
    done = lab("measure", "sparse-mmap", PATH=path_without_qemu, FOLIOLAB_RESULTS=results)
    assert sentence(done) == f"{NATIVE.qemu} is not installed; 'apt-get install {package_of(NATIVE.qemu)}' brings it."
    assert done.returncode == 30
    doctor = lab("doctor", PATH=path_without_qemu)
    assert doctor.returncode == 1
    assert f"apt-get install {package_of(NATIVE.qemu)}" in " ".join(doctor.stdout.split())


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted file system of 256 KiB."""
    with tmpfs(tmp_path / "full", "size=256k") as place:
        yield place


def test_no_room_for_the_kernel_source(full_disk: Path, small_source: Source) -> None:
    done = lab("kernel", "build", "--kernel", f"{small_source.tree}+ours", FOLIOLAB_CACHE=str(full_disk))
    assert sentence(done).startswith(f"No space left on the disk that holds {full_disk}")
    assert done.returncode == 40


@pytest.mark.boot
def test_run_on_a_kernel_that_cannot_boot(tmp_path: Path, results: str, patched_kernel: BuiltKernel) -> None:
    experiment = small_experiment(tmp_path)
    experiment.write_text(experiment.read_text().replace('memory = "256M"', 'memory = "24M"'))
    done = lab("measure", str(experiment), FOLIOLAB_RESULTS=results)
    assert "does not boot: The guest reset itself" in sentence(done)
    assert done.returncode == 37


def test_everything_that_fails_has_a_status_of_its_own() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LabError)]
    statuses = [kind.status for kind in kinds if kind not in (LabError, errors.ChecksFailed)]
    assert len(set(statuses)) == len(statuses)

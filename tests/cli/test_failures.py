# SPDX-License-Identifier: GPL-2.0-only
"""Every expected failure, through the real command line: one clear sentence and a status of its own."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliolab import errors
from foliolab.arch import ARM64, NATIVE, Architecture
from foliolab.errors import LabError
from foliolab.kernel.build import BuiltKernel
from foliolab.kernel.source import Source
from tests.cli.command import lab, sentence
from tests.machines import ARM64_64K
from tests.small import small_experiment


@pytest.fixture
def results(tmp_path: Path) -> str:
    return str(tmp_path / "results")


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["run", "no-such"], 10, "no experiment 'no-such'"),
        (["run", "sparse-mmap", "--variant", "stock,no-such"], 11, "no variant 'no-such'; known: unpatched, stock"),
        (["run", "sparse-mmap", "--cell", "pattern=zigzag"], 12, "zigzag"),
        (["exec", "--variant", "no-such", "--", "./x"], 11, "no variant 'no-such'"),
        (["exec", "--disk", "ntfs:1G", "--", "./x"], 2, "'ntfs:1G' is no disk; write ext4:2G"),
        (["exec", "--memory", "much", "--", "./x"], 2, "'much' is not a size"),
        (["exec", "--", "/no/such/program"], 2, "/no/such/program cannot be read: No such file"),
        (["exec", "--", "/bin/sh"], 2, "needs shared libraries"),
        (["exec", "--", "/etc/passwd"], 2, "is not a 64-bit executable"),
        (["run", "sparse-mmap", "--arch", "x86_64", "--page-size", "64k"], 2, "x86_64 has no pages of 64k; it has 4k"),
        (["exec", "--arch", "x86_64", "--page-size", "16k", "--", "./x"], 2, "x86_64 has no pages of 16k; it has 4k"),
        (["kernel", "build", "--arch", "x86_64", "--page-size", "16k"], 2, "x86_64 has no pages of 16k; it has 4k"),
        (["kernel", "build", "--source", "/no/such/tree"], 20, "no kernel tree or tarball at /no/such/tree"),
        (["kernel", "export", "/"], 2, "exists already"),
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
    done = lab("run", str(file), FOLIOLAB_RESULTS=results)
    assert "broken.toml" in sentence(done)
    assert "line 1" in sentence(done)
    assert done.returncode == 13


def test_hook_that_does_not_apply(small_source: Source, tmp_path: Path) -> None:
    filemap = small_source.tree / "mm/filemap.c"
    filemap.write_text(filemap.read_text().replace("if (mmap_miss > MMAP_LOTSAMISS)", "if (mmap_miss > 7)"))
    done = lab("kernel", "build", "--source", str(small_source.tree), FOLIOLAB_CACHE=str(tmp_path / "cache"))
    assert "mmap-honest-hits.patch does not apply" in sentence(done)
    assert "of mm/filemap.c" in sentence(done)
    assert done.returncode == 21


def test_tree_that_cannot_be_configured(small_source: Source, tmp_path: Path) -> None:
    """A tree without most of its files fails to configure: a build failure, told by make's own words."""
    done = lab("kernel", "build", "--source", str(small_source.tree), FOLIOLAB_CACHE=str(tmp_path / "cache"))
    assert re.match(r"Configuring \S+ lab patched failed: ", sentence(done))
    assert done.returncode == 23


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
    done = lab("run", "sparse-mmap", PATH=path_without_qemu, FOLIOLAB_RESULTS=results)
    assert sentence(done) == f"{NATIVE.qemu} is not installed; 'apt-get install {NATIVE.qemu_package}' brings it."
    assert done.returncode == 30
    doctor = lab("doctor", PATH=path_without_qemu)
    assert doctor.returncode == 1
    assert f"apt-get install {NATIVE.qemu_package}" in " ".join(doctor.stdout.split())


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted file system of 256 KiB."""
    place = tmp_path / "full"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system takes root")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_no_room_for_the_kernel_source(full_disk: Path, small_source: Source) -> None:
    done = lab("kernel", "build", "--source", str(small_source.tree), FOLIOLAB_CACHE=str(full_disk))
    assert sentence(done).startswith(f"No space left on the disk that holds {full_disk}")
    assert done.returncode == 40


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A static program that writes, exits, crashes its kernel or sleeps, as its arguments say."""
    return compiled(NATIVE, tmp_path_factory.mktemp("program"))


def compiled(arch: Architecture, place: Path) -> str:
    source = place / "act.c"
    source.write_text(_ACT)
    binary = place / "act"
    subprocess.run([arch.compiler, "-static", "-O2", "-o", str(binary), str(source)], check=True)
    return str(binary)


_ACT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (!strcmp(argv[1], "write")) {
		printf("%s\n", argv[2]);
		fprintf(stderr, "to stderr\n");
		return atoi(argv[3]);
	}
	if (!strcmp(argv[1], "abort"))
		abort();
	if (!strcmp(argv[1], "sleep"))
		sleep(1000);
	if (!strcmp(argv[1], "crash")) {
		FILE *trigger = fopen("/proc/sysrq-trigger", "w");

		fputs("c", trigger);
		fclose(trigger);
	}
	if (!strcmp(argv[1], "eat"))
		for (;;)
			memset(malloc(1 << 20), 1, 1 << 20);
	return 1;
}
"""


@pytest.mark.boot
def test_exec_passes_output_and_status_on(program: str, patched_kernel: BuiltKernel) -> None:
    done = lab("exec", "--", program, "write", "a b  'c'", "42")
    assert (done.returncode, done.stdout) == (42, "a b  'c'\n")
    assert "to stderr" in done.stderr


@pytest.mark.boot
def test_exec_on_another_machine(tmp_path: Path) -> None:
    program = compiled(ARM64, tmp_path)
    assert sentence(lab("exec", "--arch", "x86_64", "--", program)) == f"{program} is not a program for x86_64."
    machine = ["--arch", "arm64", "--page-size", "64k", *(f"--with={extra}" for extra in ARM64_64K.extras)]
    ARM64_64K.kernel()  # outside of the command's time limit
    done = lab("exec", *machine, "--", program, "write", "hello", "7")
    assert (done.returncode, done.stdout) == (7, "hello\n")


@pytest.mark.boot
def test_exec_turns_a_signal_into_a_status(program: str, patched_kernel: BuiltKernel) -> None:
    assert lab("exec", "--", program, "abort").returncode == 128 + 6


@pytest.mark.boot
def test_exec_says_when_memory_ran_out(program: str, patched_kernel: BuiltKernel) -> None:
    done = lab("exec", "--memory", "128M", "--", program, "eat")
    assert done.returncode == 128 + 9
    assert "The guest had no memory left for /bin/act." in done.stderr


@pytest.mark.boot
@pytest.mark.parametrize(
    ("argv", "act", "status", "words"),
    [
        ([], "crash", 31, "The guest crashed: "),
        (["--timeout", "2"], "sleep", 32, "The guest did not "),
        (["--memory", "24M"], "write", 31, "The guest reset itself"),
    ],
    ids=["crash", "hang", "no boot"],
)
def test_guest_that_ends_badly(
    argv: list[str], act: str, status: int, words: str, program: str, patched_kernel: BuiltKernel
) -> None:
    done = lab("exec", *argv, "--", program, act, "x", "0")
    assert words in sentence(done)
    assert done.returncode == status


@pytest.mark.boot
def test_run_on_a_kernel_that_cannot_boot(tmp_path: Path, results: str, patched_kernel: BuiltKernel) -> None:
    experiment = small_experiment(tmp_path)
    experiment.write_text(experiment.read_text().replace('memory = "256M"', 'memory = "24M"'))
    done = lab("run", str(experiment), FOLIOLAB_RESULTS=results)
    assert "The guest reset itself" in sentence(done)
    assert done.returncode == 31


def test_everything_that_fails_has_a_status_of_its_own() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LabError)]
    statuses = [kind.status for kind in kinds if kind not in (LabError, errors.ChecksFailed)]
    assert len(set(statuses)) == len(statuses)

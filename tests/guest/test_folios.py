# SPDX-License-Identifier: GPL-2.0-only
"""The folio table, against the kernel's own tool and on commands of every kind."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foliolab.arch import NATIVE
from foliolab.kernel.source import Source
from foliolab.progress import Reporter
from foliolab.vm.image import guest_programs
from tests.guest.program import failed, run

PAGE = os.sysconf("SC_PAGESIZE")
MIB = 1 << 20

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root sees in which folios memory is")


@pytest.fixture(scope="module")
def folios() -> Path:
    return guest_programs(NATIVE, Reporter())["folios"]


def rows(table: dict[str, Any]) -> dict[str, int]:
    return {row["name"]: row["bytes"] for row in table["rows"]}


@pytest.fixture
def large_folios(tmp_path: Path) -> Iterator[Path]:
    """A file system that puts files into folios as large as they are."""
    if PAGE != 4096:
        pytest.skip("the sizes are those of pages of 4 KiB")
    place = tmp_path / "large"
    place.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=64m,huge=within_size", "none", str(place)]
    if subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("this kernel has no huge pages on tmpfs")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


# Maps a file in many ways, touches it, says so and waits.
HOLD = """
import ctypes, os, sys
path, page = sys.argv[1], os.sysconf("SC_PAGESIZE")
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd, place, mib = os.open(path, os.O_RDONLY), 0x700000000000, 1 << 20
def touch(shift, offset, length, step=page, access=1):
    global place
    place += 64 * mib
    address = libc.mmap(place + shift, length, access, 2 | 0x10, fd, offset)  # private, fixed
    assert address == place + shift
    for i in range(0, length, step):
        ctypes.c_ubyte.from_address(address + i).value
touch(0, 0, 9 * mib, access=5)            # as aligned as it can be, and text
touch(16 * page, 0, 9 * mib)              # not aligned to the larger folios
touch(page, 0, 9 * mib)                   # not aligned at all
touch(5 * page, 5 * page, 3 * mib)        # begins and ends within a folio
touch(0, 0, 9 * mib, step=40 * page)      # what fault-around maps
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(large_folios: Path) -> Iterator[int]:
    """A process that has a file of large folios mapped in many ways."""
    file = large_folios / "file"
    file.write_bytes(os.urandom(10 * MIB + 300 * 1024 + 1))
    argv = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def thpmaps(source: Source, pid: int) -> Counter[str]:
    """What the kernel's own tool counts, PTEs and PMDs together: name -> bytes."""
    tool = [sys.executable, str(source.tree / "tools/mm/thpmaps")]
    argv = [*tool, "--pid", str(pid), "--rollup", "--inc-empty", "--cont", "64K", "--cont", "16K"]
    text = subprocess.run(argv, capture_output=True, check=True, text=True).stdout
    counted = Counter[str]()
    for name, kib in re.findall(r"^(file-\S+): +(\d+) kB", text, re.MULTILINE):
        counted[re.sub("-(pte|pmd)-", "-", name)] += int(kib) * 1024
    return counted


def mapped_by_smaps(pid: int) -> int:
    """Bytes of files, by another file of /proc."""
    total = 0
    is_file = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0]:
            is_file = words[4] != "0"
        elif is_file and words[0] in ("Rss:", "Anonymous:"):
            total += int(words[1]) * (1024 if words[0] == "Rss:" else -1024)
    return total


@needs_root
def test_the_table_is_that_of_the_kernels_own_tool(folios: Path, source: Source, holder: int) -> None:
    ours = run(folios, "--pid", str(holder), "--cont", "64K", "--cont", "16K", "--json")
    theirs = thpmaps(source, holder)
    # Folios of two pages have no row there.
    assert {name: size for name, size in rows(ours).items() if not name.endswith("-8kB")} == dict(theirs)
    assert ours["mapped_bytes"] == mapped_by_smaps(holder)
    assert ours["rows"][0]["share"] == pytest.approx(ours["rows"][0]["bytes"] / ours["mapped_bytes"], abs=1e-6)
    for kind in ("thp-aligned-2048kB", "thp-unaligned-2048kB", "thp-partial", "cont-aligned-64kB"):
        assert theirs[f"file-{kind}"] > 0, kind


@needs_root
def test_text_and_its_tlb_entries(folios: Path, holder: int) -> None:
    everything, only_text = (run(folios, "--pid", str(holder), *more, "--json") for more in ([], ["--text"]))
    text = everything["text"]
    assert text == only_text["text"]
    assert text["bytes"] == only_text["mapped_bytes"] < everything["mapped_bytes"]
    # 9 MiB in blocks; of these, PMDs map as many as there are, and the rest of the text is in small folios.
    assert text["contpte_share"] == pytest.approx(9 * MIB / text["bytes"], abs=1e-6)
    small_pages = (text["bytes"] - 9 * MIB) // PAGE
    pmds = rows(only_text)["file-thp-aligned-2048kB"] // (2 * MIB)
    blocks = (9 - 2 * pmds) * MIB // (64 << 10)
    assert text["tlb_entries_contpte"] == text["tlb_entries"] == pmds + blocks + small_pages
    assert text["tlb_entries_uncoalesced"] == pmds + 16 * blocks + small_pages
    groups = text["tlb_entries_four_pages"] - pmds - 4 * blocks
    assert small_pages / 4 <= groups <= small_pages


@needs_root
def test_the_table_as_text(folios: Path, holder: int) -> None:
    done = subprocess.run([folios, "--pid", str(holder)], capture_output=True, check=True, text=True)
    heading, *lines = done.stdout.splitlines()
    assert heading.split() == ["folios", "KiB", "%"]
    name, kib, share = lines[0].split()
    assert name.startswith("file-thp-aligned-")
    assert int(kib) > 0 <= float(share) < 100
    assert next(line for line in lines if line.startswith("all mapped files")).split()[-1] == "100.0"


@needs_root
def test_all_processes(folios: Path, holder: int) -> None:
    table, one = run(folios, "--all", "--json"), run(folios, "--pid", str(holder), "--json")
    assert table["processes"] > 1
    for name, size in rows(one).items():
        assert rows(table)[name] >= size


# What becomes of processes that run side by side, and how often each has to be counted.
MANY = r"""
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void *nap(void *unused)
{
	usleep(1000);
	return unused;
}

static void *leave(void *unused)
{
	usleep(20000);
	exit(5);
	return unused;
}

static void *become(void *path)
{
	execl(path, path, "nothing", NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *what = argv[1];
	char *nothing[] = { argv[0], "nothing", NULL };
	pthread_t thread;
	int status;
	pid_t child;

	if (!strcmp(what, "nothing"))
		return 0;
	if (!strcmp(what, "threads") || !strcmp(what, "exec-in-thread")) {
		for (int i = 0; i < 20; i++)
			pthread_create(&thread, NULL, nap, NULL);
		if (!strcmp(what, "threads")) {
			pthread_create(&thread, NULL, leave, NULL);
			pthread_exit(NULL);
		}
		pthread_create(&thread, NULL, become, argv[0]);
		pause();
	}
	if (!strcmp(what, "forks")) {
		for (int i = 0; i < 100; i++)
			if (!fork())
				return 0;
		while (wait(NULL) > 0)
			;
	}
	if (!strcmp(what, "spawn")) {
		posix_spawn(&child, "/no/such/program", NULL, NULL, nothing, environ);
		posix_spawn(&child, argv[0], NULL, NULL, nothing, environ);
		waitpid(child, NULL, 0);
		child = vfork();
		if (!child)
			_exit(3);
		waitpid(child, NULL, 0);
	}
	if (!strcmp(what, "stop")) {
		child = fork();
		if (!child) {
			raise(SIGSTOP);
			return 9;
		}
		waitpid(child, &status, WUNTRACED);
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
			return 1;
		kill(child, SIGCONT);
		waitpid(child, &status, 0);
		return WEXITSTATUS(status);
	}
	if (!strcmp(what, "handle")) {
		signal(SIGTRAP, exit);
		raise(SIGTRAP);
	}
	if (!strcmp(what, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(what, "leave-child") && !fork())
		usleep(300000);
	return argc > 2 ? puts(argv[2]), atoi(argv[2]) : 0;
}
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("many")
    (place / "many.c").write_text(MANY)
    argv = [NATIVE.compiler, "-static", "-pthread", "-o", str(place / "many"), str(place / "many.c")]
    subprocess.run(argv, check=True)
    return place / "many"


@needs_root
@pytest.mark.parametrize(
    ("what", "processes", "status"),
    [
        ("nothing", 1, 0),
        ("threads", 1, 5),
        ("exec-in-thread", 1, 0),
        ("forks", 101, 0),
        ("spawn", 2, 0),  # a child that borrows its parent's memory adds nothing
        ("stop", 2, 9),
        ("handle", 1, 5),
        ("kill", 1, 128 + 9),
    ],
)
def test_a_command_with_all_that_it_starts(folios: Path, many: Path, what: str, processes: int, status: int) -> None:
    done = subprocess.run([folios, "--json", "--run", "--", many, what], capture_output=True, check=False, timeout=60)
    assert done.stderr == b""
    table = json.loads(done.stdout)
    assert (table["processes"], table["status"], done.returncode) == (processes, status, status)
    # The program is small, but its text is not nothing.
    assert table["mapped_bytes"] >= table["text"]["bytes"] >= processes * 4 * PAGE


@needs_root
def test_a_command_keeps_its_output_and_options(folios: Path, many: Path) -> None:
    done = subprocess.run([folios, "--json", "--run", "--", many, "--json", "42"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (42, b"42\n")
    assert json.loads(done.stdout)["status"] == 42


@needs_root
def test_what_a_command_leaves_running_is_waited_for(folios: Path, many: Path) -> None:
    done = subprocess.run([folios, "--json", "--run", "--", many, "leave-child"], capture_output=True, check=True)
    assert done.stderr == b"folios: The command has ended; waiting for what it left running.\n"
    assert json.loads(done.stdout)["processes"] == 2


@needs_root
def test_an_interrupted_command_still_has_its_table(folios: Path) -> None:
    argv = [str(folios), "--json", "--run", "--", "sh", "-c", "echo up; exec sleep 60"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0) as running:
        assert running.stderr
        assert running.stderr.readline() == b"up\n"
        os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C does
        output, _ = running.communicate(timeout=30)
    assert (running.returncode, json.loads(output)["processes"]) == (128 + signal.SIGINT, 1)


@needs_root
def test_what_cannot_be_looked_at(folios: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    assert failed(folios, "--pid", str(ended.pid)) == (1, f"folios: There is no process {ended.pid}.")
    sentence = "folios: /no/such/program: No such file or directory."
    assert failed(folios, "--run", "--", "/no/such/program") == (127, sentence)
    assert failed(folios, "--run", "--", "/etc/passwd")[0] == 126


def test_others_than_root_are_told_so(folios: Path) -> None:
    as_nobody = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
    # The cache may be in a directory that others cannot enter: the program is passed open.
    with folios.open("rb") as program:
        argv = [*as_nobody, f"/proc/self/fd/{program.fileno()}", "--all"]
        done = subprocess.run(argv, capture_output=True, check=False, pass_fds=[program.fileno()])
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"folios: Only root may see in which folios memory is; run this as root.\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "One of --pid, --all and --run is needed; see --help."),
        (["--all", "--pid", "1"], "One of --pid, --all and --run is needed; see --help."),
        (["--run"], "--run takes a command; see --help."),
        (["--all", "x"], "'x' is not an option; see --help."),
        (["--pid", "me"], "--pid takes a number of at least 1, not 'me'."),
        (["--all", "--cont", "48K"], f"--cont takes a power of two of at least {2 * PAGE} bytes, not '48K'."),
        (["--all", "--cont", "1K"], f"--cont takes a power of two of at least {2 * PAGE} bytes, not '1K'."),
    ],
)
def test_bad_arguments(folios: Path, arguments: list[str], sentence: str) -> None:
    assert failed(folios, *arguments) == (2, f"folios: {sentence}")

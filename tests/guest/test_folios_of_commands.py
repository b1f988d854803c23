# SPDX-License-Identifier: GPL-2.0-only
"""The folio table of a command with all that it starts."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from tests.guest.program import PAGE, needs_root

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
    argv = [str(folios), "--json", "--run", "--", "sh", "-c", "echo up; exec sleep 600"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0) as running:
        assert running.stderr
        assert running.stderr.readline() == b"up\n"
        os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C does
        output, _ = running.communicate(timeout=60)
    assert (running.returncode, json.loads(output)["processes"]) == (128 + signal.SIGINT, 1)

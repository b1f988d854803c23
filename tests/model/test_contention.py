# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark of the window's lock compiles, and a thread by itself always learns."""

import subprocess
from pathlib import Path

import pytest

from foliolab import process
from foliolab.errors import BuildError
from foliolab.files import MODEL
from foliolab.model.compiled import INCLUDES, WINDOW

_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-pthread")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("contention") / "contention"
    argv = [process.tool("cc"), *_FLAGS, *INCLUDES, "-o", str(path), str(MODEL / "contention.c"), str(WINDOW)]
    process.run(argv, BuildError)
    return path


def test_one_thread_is_never_turned_away(program: Path) -> None:
    done = subprocess.run([program, "-pages=65536", "-touches=2048"], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [(lock, int(threads)) for lock, threads, *_ in rows] == [
        (lock, threads) for lock in ("spin", "try") for threads in (1, 2, 4, 16, 64)
    ]
    unlearnt = {(lock, threads): float(share) for lock, threads, _, _, share in rows}
    assert {unlearnt["spin", threads] for threads in ("1", "2", "4", "16", "64")} == {0}
    assert unlearnt["try", "1"] == 0


def test_what_it_cannot_do_is_named(program: Path) -> None:
    for argument, sentence in {
        "-threads=3": "contention: '-threads=3' is not -pages=N, -touches=N or -between=N.\n",
        "-touches=1": "contention: -touches takes 64 to a 32nd of -pages.\n",
    }.items():
        done = subprocess.run([program, argument], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)

# SPDX-License-Identifier: GPL-2.0-only
"""Guest programs run on this machine."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.errors import BuildError

Plan = Callable[..., list[int]]
"""The pages of an access pattern, which is named first."""
PAGE = os.sysconf("SC_PAGESIZE")
"""Bytes."""
MIB = 1 << 20
THP = Path("/sys/kernel/mm/transparent_hugepage")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root sees in which folios memory is")


def sanitized(name: str, place: Path) -> str:
    """A program of this directory, compiled into ``place`` with sanitizers, so that undefined behaviour ends it."""
    flags = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-std=gnu11"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program, source = str(place / name), str(Path(__file__).with_name(f"{name}.c"))
    process.run([process.tool(NATIVE.compiler), *flags, "-o", program, source], BuildError)
    return program


def run(program: Path, *arguments: str | Path) -> dict[str, Any]:
    """The one JSON object that a program prints when all is well."""
    done = subprocess.run([program, *arguments], capture_output=True, check=True)
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def failed(program: Path, *arguments: str | Path) -> tuple[int, str]:
    """The exit status and the one sentence of a program that fails."""
    return _sentence(subprocess.run([program, *arguments], capture_output=True, check=False))


def failed_as_nobody(program: Path, *arguments: str | Path) -> tuple[int, str]:
    """The same for somebody who is not root."""
    return _sentence(as_nobody(program, *arguments))


def as_nobody(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """A program run by somebody who is not root."""
    nobody = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
    # The cache may be in a directory that others cannot enter: the program is passed open.
    with program.open("rb") as stream:
        argv = [*nobody, f"/proc/self/fd/{stream.fileno()}", *arguments]
        return subprocess.run(argv, capture_output=True, check=False, pass_fds=[stream.fileno()])


def random_file(path: Path, pages: int) -> Path:
    """A file of so many pages, of which no file system stores less."""
    path.write_bytes(os.urandom(pages * PAGE))
    return path


def _sentence(done: subprocess.CompletedProcess[bytes]) -> tuple[int, str]:
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    return done.returncode, done.stderr.decode().strip()

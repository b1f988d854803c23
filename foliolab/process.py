# SPDX-License-Identifier: GPL-2.0-only
"""Finding other programs, which packages.txt lists for the bootstrap as well, and starting them."""

import errno
import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from foliolab.arch import Architecture
from foliolab.errors import BuildError, LabError, MissingTool
from foliolab.files import REPOSITORY


@dataclass(frozen=True)
class Need:
    name: str
    """A program, a C header, or the path of a file."""
    package: str
    """Debian's, which brings it."""
    purpose: str
    machine: str = ""
    """As ``uname -m`` prints it, if it is for that only."""

    @property
    def mine(self) -> bool:
        """Whether it is for this machine."""
        return self.machine in ("", platform.machine())


@cache
def _listed() -> tuple[Need, ...]:
    lines = (REPOSITORY / "packages.txt").read_text().splitlines()
    return tuple(Need(*line.split()) for line in lines if line and line[0] != "#")


def needs(purpose: str) -> list[Need]:
    """What this machine takes for a purpose."""
    return [need for need in _listed() if need.purpose == purpose and need.mine]


def package_of(name: str) -> str:
    """Debian's package that brings something to this machine; MissingTool if packages.txt does not say."""
    named = {need.mine: need.package for need in _listed() if need.name == name}
    if not named:
        raise MissingTool(f"packages.txt does not say which package brings {name}; add a line for it there.")
    return named[True] if True in named else named[False]


def find(name: str) -> str | None:
    """The path of a program, a C header or a file; None if it is not installed."""
    if name.endswith(".h") or name.startswith("/"):
        place = Path("/usr/include", name)  # which is the name itself if that is a path
    elif found := shutil.which(name):
        return found
    else:
        place = Path("/usr/sbin", name)  # mke2fs and friends, for users without sbin in their PATH
    return str(place) if place.exists() else None


def tool(name: str) -> str:
    """The path of what packages.txt lists, or MissingTool, which says which Debian package brings it."""
    found = find(name)
    if found is None:
        raise MissingTool(f"{name} is not installed; 'apt-get install {package_of(name)}' brings it.")
    return found


def require(purpose: str) -> None:
    """MissingTool unless all is here that packages.txt lists for a purpose."""
    for need in needs(purpose):
        tool(need.name)


def compiler(arch: Architecture) -> tuple[str, bytes]:
    found = tool(arch.compiler)
    return found, run([found, "--version"], BuildError)


def dying_with_parent(argv: Sequence[str]) -> list[str]:
    """The command that runs ``argv`` so that the kernel kills it as soon as we are gone.

    The signal is tied to the thread that starts the command: start it from the main thread.
    """
    return [tool("setpriv"), "--pdeathsig", "KILL", *argv]


def error_line(lines: Sequence[str]) -> str | None:
    for pattern in (r"\b(?:error|ERROR):", r"\*\*\* ", r"^E: "):
        for text in lines:
            if re.search(pattern, text):
                return text.strip()
    return None


def run(
    argv: Sequence[str],
    failure: type[LabError],
    *,
    cwd: Path | None = None,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
) -> bytes:
    """Run ``argv`` to its end and return its output; ``failure`` carries its first complaint if it fails.

    A full disk that stops it is the OSError that our own writing would get.
    """
    done = subprocess.run(dying_with_parent(argv), cwd=cwd, input=stdin, env=env, capture_output=True, check=False)
    if done.returncode:
        if b"No space left on device" in done.stderr:
            raise OSError(errno.ENOSPC, "No space left on device")
        words = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        reason = error_line(words) or (words[0] if words else f"exit status {done.returncode}")
        raise failure(f"'{shlex.join(argv)}' failed: {reason}")
    return done.stdout


def git(
    failure: type[LabError],
    *arguments: str,
    place: Path | None = None,
    settings: Mapping[str, str] | None = None,
    alone: bool = True,
    stdin: bytes | None = None,
) -> bytes:
    """Run git in ``place``, without what a caller may have set to mean another repository, as ``run`` does.

    ``alone`` it is without hooks and settings of the user's, too. Names of ``settings`` are those of git's variables
    without GIT_.
    """
    own = {**(settings or {}), **({"CONFIG_GLOBAL": os.devnull, "CONFIG_NOSYSTEM": "1"} if alone else {})}
    own = {f"GIT_{name}": value for name, value in own.items()} | {"LC_ALL": "C"}  # its complaints are read
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    argv = [tool("git"), *(["-C", str(place)] if place else []), *arguments]
    return run(argv, failure, stdin=stdin, env=inherited | own)


@contextmanager
def process_group(argv: Sequence[str], output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``argv``, output to a file, in a process group that dies whole with this block or with us.

    make starts compilers, and killing make alone would leave them writing into a build that somebody may
    have started anew. A watcher in the group waits for the other end of a pipe to close, as it does
    whatever kills us, and then kills the group.
    """
    watched, ours = os.pipe()
    # sh gives what it puts into the background an empty input, hence the detour.
    watcher = 'exec 3<&0; (read -r _ <&3; kill -KILL 0) & exec "$@" </dev/null 3<&-'
    try:
        child = subprocess.Popen(
            ["/bin/sh", "-c", watcher, "sh", *argv],
            stdin=watched,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(watched)
    try:
        yield child
    finally:
        os.close(ours)
        child.wait()

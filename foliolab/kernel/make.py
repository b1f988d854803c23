# SPDX-License-Identifier: GPL-2.0-only
"""Running make in a build directory, for kernels of the lab through tuxmake."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.errors import BuildError, ConfigError, DiskFull
from foliolab.files import cache_directory, locked, write_atomic
from foliolab.process import error_line, process_group
from foliolab.progress import Reporter

_POLL_SECONDS = 1.0
_SETTLED_SECONDS = 60
"""After which an object that make has written, and goes on from, is whole."""
_STAMP = "unfinished"
"""A file in a build directory: what is newer may be half-made."""


class MakeFailed(BuildError):
    """make ended by itself: what it made until then is whole."""


def build_lock(report: Reporter) -> AbstractContextManager[None]:
    """One build at a time: two would only fight over the cores, and they share source trees."""
    return locked(cache_directory() / "build.lock", lambda: report.say("Another build is running; waiting for it."))


@contextmanager
def unfinished_swept(directory: Path) -> Iterator[None]:
    """Before a build, remove what one that was killed may have left half-made.

    make takes any object that is newer than its source for whole, and a kill between the compiler and
    objtool leaves one that is not. What it had made long before the kill stays.
    """
    stamp = directory / _STAMP
    directory.mkdir(parents=True, exist_ok=True)
    if stamp.exists():
        since = stamp.stat().st_mtime
        for place, _, files in os.walk(directory):
            for path in (
                Path(place, name) for name in files if name.endswith((".o", ".a", ".ko")) or "vmlinux" in name
            ):
                # What is linked is worked on for minutes after its time; it is soon linked again.
                if path.lstat().st_mtime >= since or "vmlinux" in path.name:
                    path.unlink()
    else:
        stamp.touch()
    try:
        yield
    except (MakeFailed, ConfigError):
        stamp.unlink()
        raise
    stamp.unlink()


def make(
    directory: Path, tree: Path, arch: Architecture, options: str, targets: list[str], title: str, report: Reporter
) -> None:
    """Make targets of tuxmake's in ``directory``, from ``tree``, with the options of a fragment."""
    fragment = directory / "options.config"
    write_atomic(fragment, options)
    command = [
        sys.executable, "-m", "tuxmake", "--directory", str(tree), "--build-dir", str(directory),
        "--output-dir", str(directory / "artifacts"), "--target-arch", arch.name,
        "--kernel-image", arch.image,
        # allnoconfig takes the options it is given and leaves everything else off.
        "--kconfig", "allnoconfig", "--environment", f"KCONFIG_ALLCONFIG={fragment}", *targets,
    ]  # fmt: skip
    run_make(command, directory, targets[0], title, report)


def run_make(command: Sequence[str], directory: Path, name: str, title: str, report: Reporter) -> None:
    """Run a command that makes objects in ``directory``, its output in ``name``.log there, within ``unfinished_swept``.

    Raises BuildError with the first complaint, or DiskFull.
    """
    log = directory / f"{name}.log"
    status, words = logged(command, directory, log, title, report)
    if status:
        raise MakeFailed(f"{title} failed: {first_error(words)} (all of it: {log})")


def logged(argv: Sequence[str], directory: Path, log: Path, title: str, report: Reporter) -> tuple[int, str]:
    """Run a command that makes objects in ``directory``; return its exit status and output, which ``log`` keeps.

    Within ``unfinished_swept``. Raises DiskFull, or BuildError if a signal ended it.
    """
    with report.task(title) as task, log.open("wb") as output, process_group(argv, output) as child:
        since = time.time()
        while child.poll() is None:
            start = time.monotonic()
            task.note(f"{_objects(directory)} objects")
            if time.time() - since >= _SETTLED_SECONDS:
                os.utime(directory / _STAMP, (since, since))
                since = time.time()
            # Counting tens of thousands is not to cost more than a twentieth of a processor.
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(_POLL_SECONDS, 20 * (time.monotonic() - start)))
    words = log.read_text(errors="replace")
    if child.returncode and "No space left on device" in words:
        raise DiskFull(f"No space left on the disk that holds {directory}.")
    if child.returncode < 0:
        raise BuildError(f"{title} failed: {first_error(words)} (all of it: {log})")
    return child.returncode, words


def _objects(directory: Path) -> int:
    """How many object files there are; the only sign of life that a silent make gives."""
    return sum(name.endswith(".o") for _, _, files in os.walk(directory) for name in files)


def first_error(log: str) -> str:
    """The first line of a build log that says what is wrong."""
    lines = log.splitlines()
    return error_line(lines) or (lines[-1].strip() if lines else "make said nothing")

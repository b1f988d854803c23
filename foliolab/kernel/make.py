# SPDX-License-Identifier: GPL-2.0-only
"""Running what makes objects in a build directory: how far it is, what it complains of, what a kill leaves."""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from foliolab.errors import BuildError, ConfigError, DiskFull
from foliolab.files import cache_directory, lock_if_free, locked
from foliolab.process import error_line, process_group
from foliolab.progress import say, working

_POLL_SECONDS = 1.0
_SETTLED_SECONDS = 60
"""After which an object that make has written, and goes on from, is whole."""
_STAMP = "unfinished"
"""A file in a build directory: what is newer may be half-made."""
_TELLING = 50
"""So many objects tell how fast others are made."""


class MakeFailed(BuildError):
    """make ended by itself: what it made until then is whole."""


def build_lock() -> AbstractContextManager[None]:
    """One build at a time: two would only fight over the cores, and they share source trees."""
    return locked(_lock_file(), _say_waiting)


def hold_build_lock(block: ExitStack, *, unless: Callable[[], bool]) -> None:
    """Hold the build lock until the block ends, but wait for it no longer than until ``unless()`` is true: somebody
    else may make what is wanted, and go on to something that takes long."""
    if unless() or lock_if_free(block, _lock_file()):
        return
    _say_waiting()
    while not unless() and not lock_if_free(block, _lock_file()):
        time.sleep(_POLL_SECONDS)


def _lock_file() -> Path:
    return cache_directory() / "build.lock"


def _say_waiting() -> None:
    say("Another build is running; waiting for it.")


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


def run_make(command: Sequence[str], directory: Path, name: str, title: str) -> None:
    """Run a command that makes objects in ``directory``, its output in ``name``.log there, within ``unfinished_swept``.

    Raises BuildError with the first complaint, or DiskFull.
    """
    log = directory / f"{name}.log"
    status, words = logged(command, directory, log, title)
    if status:
        raise MakeFailed(f"{title} failed: {first_error(words)} (all of it: {log})")


def logged(argv: Sequence[str], directory: Path, log: Path, title: str) -> tuple[int, str]:
    """Run a command that makes objects in ``directory``; return its exit status and output, which ``log`` keeps.

    Within ``unfinished_swept``. Raises DiskFull, or BuildError if a signal ended it.
    """
    with working(title) as task, log.open("wb") as output, process_group(argv, output) as child:
        since = time.time()
        total, before, begun = _expected(directory), _objects(directory), time.monotonic()
        while child.poll() is None:
            start = time.monotonic()
            task.note(progress(_objects(directory), before, total, start - begun))
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


def _expected(directory: Path) -> int:
    """How many objects the first build in ``directory`` comes to, about; 0 if that is not known.

    As many as the last finished one that is called so but for the source, at the beginning, and the series, at the end.
    """

    def kind(place: Path) -> str:
        return re.sub(r"^(git-|tree-)?[^-]+-", "", place.name).rpartition("-")[0]

    done = [file for file in directory.parent.glob("*/System.map") if not (file.parent / _STAMP).exists()]
    alike = [file for file in done if kind(directory) and kind(file.parent) == kind(directory)]
    if not alike or directory / "System.map" in alike:
        return 0
    return _objects(max(alike, key=lambda file: file.stat().st_mtime).parent)


def progress(count: int, before: int, total: int, seconds: float) -> str:
    """What is said of ``count`` objects, of which ``before`` were there ``seconds`` ago; ``total`` may be unknown."""
    if count >= total:
        return f"{count} objects"
    if count - before < _TELLING:
        return f"{count} of about {total} objects"
    left = seconds * (total - count) / (count - before)
    return f"{count} of about {total} objects, {left / 60:.0f} min left"


def first_error(log: str) -> str:
    """The first line of a build log that says what is wrong."""
    lines = log.splitlines()
    return error_line(lines) or (lines[-1].strip() if lines else "make said nothing")

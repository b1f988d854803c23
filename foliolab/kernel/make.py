# SPDX-License-Identifier: GPL-2.0-only
"""Running make in a build directory, through tuxmake."""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.errors import BuildError, ConfigError, DiskFull
from foliolab.files import write_atomic
from foliolab.process import process_group
from foliolab.progress import Reporter

_POLL_SECONDS = 1.0


class _MakeFailed(BuildError):
    """make ended by itself: what it made until then is whole."""


@contextmanager
def unfinished_swept(directory: Path) -> Iterator[None]:
    """Before a build, remove what one that was killed may have left half-made.

    make takes any object that is newer than its source for whole, and a kill between the compiler and
    objtool leaves one that is not.
    """
    stamp = directory / "unfinished"
    directory.mkdir(parents=True, exist_ok=True)
    if stamp.exists():
        since = stamp.stat().st_mtime
        for place, _, files in os.walk(directory):
            for path in (Path(place, name) for name in files if name.endswith((".o", ".a")) or "vmlinux" in name):
                if path.lstat().st_mtime >= since:
                    path.unlink()
    if not stamp.exists():
        stamp.touch()
    try:
        yield
    except (_MakeFailed, ConfigError):
        stamp.unlink()
        raise
    stamp.unlink()


def make(
    directory: Path, tree: Path, arch: Architecture, options: str, targets: list[str], title: str, report: Reporter
) -> None:
    """Make targets of tuxmake's in ``directory``, from ``tree``, with the options of a fragment."""
    fragment = directory / "options.config"
    write_atomic(fragment, options)
    log = directory / f"{targets[0]}.log"
    command = [
        sys.executable, "-m", "tuxmake", "--directory", str(tree), "--build-dir", str(directory),
        "--output-dir", str(directory / "artifacts"), "--target-arch", arch.name,
        "--kernel-image", arch.image,
        # allnoconfig takes the options it is given and leaves everything else off.
        "--kconfig", "allnoconfig", "--environment", f"KCONFIG_ALLCONFIG={fragment}", *targets,
    ]  # fmt: skip
    with report.task(title) as task, log.open("wb") as output, process_group(command, output) as child:
        while child.poll() is None:
            task.note(f"{_objects(directory)} objects")
            time.sleep(_POLL_SECONDS)
    if child.returncode:
        words = log.read_text(errors="replace")
        if "No space left on device" in words:
            raise DiskFull(f"No space left on the disk that holds {directory}.")
        failure = _MakeFailed if child.returncode > 0 else BuildError  # less if a signal killed it
        raise failure(f"{title} failed: {_reason(words)} (all of it: {log})")


def _objects(directory: Path) -> int:
    """How many object files there are; the only sign of life that a silent make gives."""
    return sum(name.endswith(".o") for _, _, files in os.walk(directory) for name in files)


def _reason(log: str) -> str:
    """The first line of a build log that says what is wrong."""
    lines = log.splitlines()
    for pattern in (r"\berror:", r"\*\*\* ", r"^E: "):
        for text in lines:
            if re.search(pattern, text):
                return text.strip()
    return lines[-1].strip() if lines else "tuxmake said nothing"

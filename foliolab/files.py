# SPDX-License-Identifier: GPL-2.0-only
"""Where things live, files that are either whole or absent, locks, and hashes of what went into a build."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

from foliohost.files import full_disk_named as full_disk_named
from foliohost.files import locked as locked
from foliohost.files import write_atomic as write_atomic
from foliolab.progress import say

_PACKAGE = Path(__file__).resolve().parent
INSTALLED = (_PACKAGE / "tree").is_dir()
"""Whether this was installed by pip, which puts what commands are made of below the package."""
REPOSITORY = _PACKAGE / "tree" if INSTALLED else _PACKAGE.parent
KERNEL = REPOSITORY / "kernel"
FIRST_STEPS = KERNEL / "first-steps"
GUEST = REPOSITORY / "guest"
MODULE = REPOSITORY / "module"
MODEL = REPOSITORY / "model"
DEVICE = REPOSITORY / "device"
EXPERIMENTS = REPOSITORY / "experiments"
TRACES = REPOSITORY / "traces"
RELEASE = REPOSITORY / "release"


def cache_directory() -> Path:
    """The cache that outlives the clone: ``$FOLIOLAB_CACHE``, else the user's cache directory."""
    if chosen := os.environ.get("FOLIOLAB_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "foliolab"


def results_directory() -> Path:
    """The sample store's directory: ``$FOLIOLAB_RESULTS``, else ``results/`` in the checkout or where we work."""
    chosen = os.environ.get("FOLIOLAB_RESULTS")
    if chosen:
        return Path(chosen)
    return Path("foliolab-results").absolute() if INSTALLED else REPOSITORY / "results"


@contextmanager
def emptied(place: Path) -> Iterator[Path]:
    """A directory for half-made things, which is gone after the block; what a kill has left there goes before it."""
    shutil.rmtree(place, ignore_errors=True)
    with full_disk_named(place.parent):
        place.mkdir(parents=True)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


def made_once(directory: Path, name: str, make: Callable[[Path], None], *, anew: bool = False) -> Path:
    """``directory / name``, a directory that ``make`` fills if it is not there yet; it is whole or absent.

    With ``anew`` it is made again; what was there stays until that is done. Each name has a lock of its own. What
    killed processes left of other names goes, too.
    """
    published = directory / name
    if published.exists() and not anew:
        return published
    with locked(directory / f".{name}.lock", lambda: say(f"Another process is making {published}; waiting for it.")):
        if anew or not published.exists():
            sweep(directory)
            with emptied(directory / f".{name}.partial") as partial:
                make(partial)
                _sync(partial)
                with emptied(directory / f".{name}.former") as former:
                    if published.exists():
                        published.rename(former)
                    partial.rename(published)
    return published


def sweep(directory: Path) -> None:
    """Remove what killed processes left half-made in a directory. Whoever makes NAME.partial holds NAME.lock."""
    for left in (*directory.glob("*.partial"), *directory.glob("*.former")):
        with ExitStack() as block:
            if lock_if_free(block, left.with_suffix(".lock")):
                shutil.rmtree(left, ignore_errors=True)


def lock_if_free(block: ExitStack, path: Path) -> bool:
    """Hold a lock until the block ends; False if somebody else holds it."""
    try:
        block.enter_context(locked(path, on_wait=_leave))
    except BlockingIOError:
        return False
    return True


def _leave() -> NoReturn:
    raise BlockingIOError


def _sync(directory: Path) -> None:
    """Have the disk hold all its files, or a power cut may leave empty ones under a name that lasts."""
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest(parts: Iterable[bytes | str]) -> str:
    """A 16-digit hash over ``parts``, with their boundaries."""
    total = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        total.update(f"{len(content)}:".encode())
        total.update(content)
    return total.hexdigest()[:16]


def digest_files(paths: Iterable[Path], root: Path | None = None) -> str:
    """A hash over names and contents of ``paths``, in sorted order.

    Names are relative to ``root``; without one, the directories that files lie in do not count.
    """
    parts: list[bytes | str] = []
    for name, path in sorted((path.relative_to(root) if root else Path(path.name), path) for path in paths):
        parts += [str(name), path.read_bytes()]
    return digest(parts)

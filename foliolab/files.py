# SPDX-License-Identifier: GPL-2.0-only
"""Where things live, files that are either whole or absent, locks, and hashes of what went into a build."""

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from foliolab.errors import DiskFull

_FULL = (errno.ENOSPC, errno.EDQUOT)

REPOSITORY = Path(__file__).resolve().parent.parent
KERNEL = REPOSITORY / "kernel"
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
    """The sample store's directory: ``$FOLIOLAB_RESULTS``, else ``results/`` in the checkout."""
    chosen = os.environ.get("FOLIOLAB_RESULTS")
    return Path(chosen) if chosen else REPOSITORY / "results"


def state_directory() -> Path:
    """What has to be put back one day: ``$FOLIOLAB_STATE``, else the user's state directory."""
    if chosen := os.environ.get("FOLIOLAB_STATE"):
        return Path(chosen)
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(base) / "foliolab"


@contextmanager
def full_disk_named(place: Path) -> Iterator[None]:
    """Turn "no space left" into a sentence that names the place."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"No space left on the disk that holds {place}.") from error
        raise


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write ``path`` so that a reader, or a kill at any moment, sees the old or the new content."""
    content = data.encode() if isinstance(data, str) else data
    with full_disk_named(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; ``on_wait`` is called once if somebody else holds it, before waiting."""
    with full_disk_named(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait:
                on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


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


def made_once(directory: Path, name: str, make: Callable[[Path], None]) -> Path:
    """``directory / name``, a directory that ``make`` fills if it is not there yet; it is whole or absent."""
    published = directory / name
    with locked(directory / "lock"):
        if not published.exists():
            with emptied(directory / "partial") as partial:
                make(partial)
                _sync(partial)
                partial.rename(published)
    return published


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

# SPDX-License-Identifier: GPL-2.0-only
"""A directory of the host as a file system of a guest, made without root."""

import os
from pathlib import Path

from foliolab import process
from foliolab.errors import LabError, UsageError
from foliolab.files import full_disk_named

_BLOCK = 4096
_ROOM = 1 << 30
_SPARE_INODES = 1 << 16


def require_directory(directory: Path, option: str) -> None:
    """Raise UsageError unless ``directory``, which an option of the command line names, can be copied."""
    if not directory.is_dir():
        what = "is no directory" if directory.exists() else "does not exist"
        raise UsageError(f"{option}: {directory} {what}.")
    if directory.resolve() == Path("/"):
        raise UsageError(f"{option}: the whole of this machine, with its /proc and /dev, cannot be copied.")


def mke2fs(path: Path, *options: str, extended: str = "") -> None:
    """Make a file ext4, with no blocks kept for root, and nothing left for a kernel to initialise while it measures."""
    lazy = f"{extended}lazy_itable_init=0,lazy_journal_init=0"
    argv = [process.tool("mke2fs"), "-q", "-F", "-t", "ext4", "-b", str(_BLOCK), "-m", "0", "-E", lazy]
    process.run([*argv, *options, str(path)], LabError)


def make_ext4(path: Path, size_bytes: int | None, directory: Path | None = None) -> None:
    """An ext4 file system of ``size_bytes`` in the sparse file ``path``, with all that is in ``directory``.

    Owners, modes, times, links and holes stay as they are. Without a size there is room for what
    is there twice, and for a GiB. UsageError if it does not fit.
    """
    content, entries = _measure(directory) if directory else (0, 0)
    size = size_bytes or 2 * content + _ROOM
    if size < content:
        raise UsageError(f"{directory} holds {content >> 20} MiB, and does not fit onto a disk of {size >> 20} MiB.")
    options = ["-d", str(directory)] if directory else []
    if size >= _ROOM:
        options += ["-N", str(2 * entries + _SPARE_INODES)]
    elif entries:
        options += ["-N", str(2 * entries + 1024)]
    with full_disk_named(path.parent):
        with path.open("wb") as stream:
            stream.truncate(size)
        try:
            mke2fs(path, *options)
        except LabError as error:
            if "Could not allocate" in str(error):
                raise UsageError(f"{directory} does not fit onto a disk of {size >> 20} MiB.") from error
            raise


def _measure(directory: Path) -> tuple[int, int]:
    """How many bytes of blocks the entries of a directory take, and how many there are."""

    def fail(error: OSError) -> None:
        raise error

    content = entries = 0
    for place, directories, files in os.walk(directory, onerror=fail):
        for name in (*directories, *files):
            status = Path(place, name).lstat()
            held = min(status.st_size, status.st_blocks * 512) or status.st_size
            content += max(-(-held // _BLOCK), 1) * _BLOCK
            entries += 1
    return content, entries

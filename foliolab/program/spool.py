# SPDX-License-Identifier: GPL-2.0-only
"""Our standard input as a disk, from which a guest reads it: input of any size takes none of its memory."""

import os
import select
import shutil
import stat
import sys
from pathlib import Path

from foliolab.files import full_disk_named
from foliolab.program.run import Input
from foliolab.progress import Reporter
from foliolab.vm.guest import Disk

_BLOCK = 4096
_PATIENCE_SECONDS = 2


def spooled_input(scratch: Path, report: Reporter) -> Input | None:
    """All that a file or a pipe holds that is our standard input; None if that is a terminal, /dev/null or empty."""
    if sys.stdin is None:
        return None
    stream = sys.stdin.buffer
    if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):
        return None
    path = scratch / "input.img"
    # Whoever was started with a pipe that nobody closes would else wait without a word.
    if not select.select([stream], [], [], _PATIENCE_SECONDS)[0]:
        report.say("waiting for the end of the standard input; '</dev/null' if there is none")
    with full_disk_named(scratch), path.open("wb") as out:
        shutil.copyfileobj(stream, out, 1 << 20)
        size = out.tell()
        out.truncate(-(-size // _BLOCK) * _BLOCK)
    return Input(Disk(path, "raw"), size) if size else None

# SPDX-License-Identifier: GPL-2.0-only
"""A directory for the disks of one command, which may be too large for /tmp."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from foliolab.files import cache_directory, lock_if_free, sweep


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory in the cache that goes with the block. What a kill has left of another one goes, too."""
    home = scratch_home()
    with ExitStack() as block:
        number = next(number for number in count() if lock_if_free(block, home / f"{number}.lock"))
        sweep(home)
        place = home / f"{number}.partial"
        block.callback(shutil.rmtree, place, ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
        yield place


def scratch_home() -> Path:
    return cache_directory().resolve() / "temporary"

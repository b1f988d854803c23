# SPDX-License-Identifier: GPL-2.0-only
"""Files of random data on a disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foliolab.errors import UsageError
from foliolab.trace.disk_file import scratch_file


@contextmanager
def disk_file(directory: Path, size: int) -> Iterator[Path]:
    """One without a name; where the directory is in memory, the test is skipped."""
    try:
        with scratch_file(directory, size) as path:
            yield path
    except UsageError as error:
        pytest.skip(str(error))

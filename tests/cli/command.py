# SPDX-License-Identifier: GPL-2.0-only
"""The real command line, as users call it."""

import subprocess
import sys

from tests.processes import called


def lab(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # It may wait for the build of another kernel.
    return called(sys.executable, "-m", "foliolab", *argv, seconds=900, **environment)


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The last line of the error output, which is all that a failure may say after the progress."""
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("lab: ")
    return last.removeprefix("lab: ")

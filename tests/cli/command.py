# SPDX-License-Identifier: GPL-2.0-only
"""The real command line, as users call it."""

import os
import subprocess
import sys

from foliolab.files import REPOSITORY


def lab(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "foliolab", *argv],
        cwd=REPOSITORY,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,  # it may wait for the build of another kernel
    )


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The last line of the error output, which is all that a failure may say after the progress."""
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("lab: ")
    return last.removeprefix("lab: ")

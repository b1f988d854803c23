# SPDX-License-Identifier: GPL-2.0-only
"""The host's command line, as users call it."""

import os
import subprocess
import sys

from foliolab.files import REPOSITORY

ARGV = (sys.executable, str(REPOSITORY / "host"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY / "host")}
"""Of Python that imports some of it."""


def host(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ARGV, *argv],
        cwd=REPOSITORY,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

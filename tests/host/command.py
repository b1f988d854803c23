# SPDX-License-Identifier: GPL-2.0-only
"""The host's command line, as users call it."""

import os
import subprocess
import sys

from foliolab.files import REPOSITORY
from tests.processes import called

ARGV = (sys.executable, str(REPOSITORY / "host"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY / "host")}
"""Of Python that imports some of it."""


def host(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return called(*ARGV, *argv, seconds=600, **environment)

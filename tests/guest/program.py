# SPDX-License-Identifier: GPL-2.0-only
"""Guest programs run on this machine."""

import json
import subprocess
from pathlib import Path
from typing import Any


def run(program: Path, *arguments: str | Path) -> dict[str, Any]:
    """The one JSON object that a program prints when all is well."""
    done = subprocess.run([program, *arguments], capture_output=True, check=True)
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def failed(program: Path, *arguments: str | Path) -> tuple[int, str]:
    """The exit status and the one sentence of a program that fails."""
    done = subprocess.run([program, *arguments], capture_output=True, check=False)
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    return done.returncode, done.stderr.decode().strip()

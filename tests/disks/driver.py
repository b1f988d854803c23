# SPDX-License-Identifier: GPL-2.0-only
"""A driver on this machine, with a database of a test's."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

TOOLS = {"mdbx": "cargo", "bbolt": "go"}
"""What the engines of some stores are fetched with."""


@dataclass(frozen=True)
class Driver:
    command: tuple[str, ...]
    data: Path
    """As the driver sees it."""

    def does(self, *operations: str, hint: str = "none") -> None:
        """All of it, without a word."""
        done = self._run(operations, hint)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", "")

    def fails(self, *operations: str, hint: str = "none") -> str:
        """With these last words."""
        done = self._run(operations, hint)
        assert done.returncode == 1
        return done.stderr.splitlines()[-1]

    def _run(self, operations: tuple[str, ...], hint: str) -> subprocess.CompletedProcess[str]:
        lines = "".join(f"{operation}\n" for operation in operations)
        argv = [*self.command, str(self.data), hint]
        return subprocess.run(argv, input=lines, capture_output=True, text=True, check=False)

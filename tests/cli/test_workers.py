# SPDX-License-Identifier: GPL-2.0-only
"""What commands load of whoever executes boots elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

from foliolab.errors import ClusterError
from foliolab.files import REPOSITORY
from tests.small import small_experiment

RUN = """
import sys
from foliolab.cli.main import main
status = main(sys.argv[1:])
print(status, "distributed" in sys.modules)
"""


def test_only_a_command_with_workers_loads_distributed(tmp_path: Path) -> None:
    def ends(*options: str) -> list[str]:
        """The exit status, and whether it was loaded."""
        argv = [
            "measure",
            str(small_experiment(tmp_path)),
            "--backend",
            "model",
            "--cell",
            "pattern=sequential",
            *options,
        ]
        command = [sys.executable, "-c", RUN, *argv]
        settings = os.environ | {"FOLIOLAB_RESULTS": str(tmp_path / "results")}
        done = subprocess.run(command, cwd=REPOSITORY, env=settings, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1].split()

    assert ends() == ["0", "False"]
    assert ends("--cluster", "tcp://127.0.0.1:1") == [str(ClusterError.status), "True"]
    assert ends("--cluster", "") == ["2", "False"]

# SPDX-License-Identifier: GPL-2.0-only
"""The units of systemd call commands that there are."""

import shutil
import subprocess
from pathlib import Path

import pytest

from foliohost.cli.main import command_line
from foliohost.files import state_directory
from foliolab.files import REPOSITORY

UNITS = sorted((REPOSITORY / "host/systemd").iterdir())


def test_they_call_the_tools_and_name_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOLIOLAB_STATE", raising=False)
    called = []
    for unit in UNITS:
        for line in unit.read_text().splitlines():
            key, _, value = line.partition("=")
            if key.startswith("Exec"):
                program, *words = value.split()
                assert program == "foliolab-host"  # wherever it was put: systemd looks in /usr/local, too
                assert command_line(words).parse_args(words).handler
                called.append((unit.name, " ".join(words[:2])))
            elif key == "ConditionPathExists":
                assert value == str(state_directory() / "state.json")
    assert called == [
        ("foliolab-host-enforce.service", "cure enforce"),
        ("foliolab-host-enforce.service", "cure restore"),
        ("foliolab-host-metrics.service", "diagnose --host"),
        ("foliolab-host-restore.service", "cure restore"),
    ]


def test_timers_wait_for_nothing() -> None:
    """What is not there when the machine starts, as the first policy, may come later: a timer would stay off."""
    timers = [unit for unit in UNITS if unit.suffix == ".timer"]
    assert len(timers) == 2
    assert not any("\nCondition" in unit.read_text() for unit in timers)


def test_systemd_understands_them(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze here")
    for unit in UNITS:
        text = unit.read_text().replace("=foliolab-host ", "=/bin/true ")
        (tmp_path / unit.name).write_text(text)
    argv = ["systemd-analyze", "verify", *(str(tmp_path / unit.name) for unit in UNITS)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "foliolab" in line]) == (0, [])

# SPDX-License-Identifier: GPL-2.0-only
import subprocess
import sys
from pathlib import Path

import pytest

from foliolab.files import sweep
from foliolab.vm.scratch import scratch_directory, scratch_home

_HOLD = """
import time
from foliolab.vm.scratch import scratch_directory
with scratch_directory() as place:
    (place / "disk").touch()
    print(place, flush=True)
    time.sleep(100)
"""


def test_what_a_kill_leaves_goes_with_the_next_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", _HOLD], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        left = Path(other.stdout.readline().strip())
        with scratch_directory() as place:
            assert (left / "disk").exists()  # its owner lives
            assert place.parent == left.parent
        assert not place.exists()
        other.kill()
    assert (left / "disk").exists()
    with scratch_directory() as place:
        assert list(place.iterdir()) == []
        assert [path for path in place.parent.iterdir() if path.is_dir()] == [place]


def test_a_sweep_spares_what_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    (scratch_home() / "7.partial").mkdir(parents=True)
    with scratch_directory() as place:
        (scratch_home() / "8.partial").mkdir()
        sweep(scratch_home())
        assert [path for path in scratch_home().iterdir() if path.is_dir()] == [place]

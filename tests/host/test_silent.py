# SPDX-License-Identifier: GPL-2.0-only
"""A program has a file open whose server does not answer any more: cures of its other files do not wait for that."""

import os
import signal
import subprocess
from pathlib import Path

from foliohost.devices import device_of
from tests.host.command import ARGV
from tests.host.silent import silent_server

_SECONDS = 60


def cure(state: Path, *words: str) -> str:
    """What a command of ``cure`` prints."""
    environment = {**os.environ, "FOLIOLAB_STATE": str(state)}
    running = subprocess.Popen([*ARGV, "cure", *words], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        out, _ = running.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()  # it ends once the file system does
        raise
    assert running.returncode == 0
    return out


def test_cures_wait_for_no_server(private_disk: Path, tmp_path: Path) -> None:
    path, state, place = private_disk / "file", tmp_path / "state", tmp_path / "silent"
    before = device_of(path).read_ahead_kb
    (tmp_path / "x.conf").write_text(f"[mine]\nfiles = {path}\nread_ahead_kb = 32\n")
    place.mkdir()
    with silent_server(place) as (other, silent):
        handles = [os.open(each, os.O_RDONLY) for each in (other, path)]
        program = subprocess.Popen(["sleep", "300"], pass_fds=handles)
        for handle in handles:
            os.close(handle)
        silent.set()
        try:
            told = cure(state, "apply", "--file", str(path), "--read-ahead-kb", "64")
            assert f"in process {program.pid}: {before} -> 64 KiB" in told
            told = cure(state, "enforce", "--policies", str(tmp_path))
            assert told == "1 open file has the window of a policy.\n"
            assert "holds" in cure(state, "show")
            assert f"in process {program.pid}: back to {before} KiB" in cure(state, "undo")
        finally:
            program.send_signal(signal.SIGKILL)
    program.wait()

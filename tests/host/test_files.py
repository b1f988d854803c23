# SPDX-License-Identifier: GPL-2.0-only
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from foliohost.engines import engine_of
from foliohost.errors import NoProbe
from foliohost.files import write_atomic
from foliohost.glimpse import glimpse
from foliohost.residency import cached
from tests.host.command import ENVIRONMENT


def test_who_owns_the_directory_cannot_have_another_file_made_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root writes metrics into a directory of another user's."""
    secret, place = tmp_path / "secret", tmp_path / "place"
    secret.write_text("secret")
    secret.chmod(0o600)
    place.mkdir()
    flush = os.fsync

    def swap(handle: int) -> None:
        flush(handle)
        (new,) = place.iterdir()
        new.unlink()
        new.symlink_to(secret)

    monkeypatch.setattr(os, "fsync", swap)
    write_atomic(place / "file", "content")
    assert secret.stat().st_mode & 0o777 == 0o600


KILLED = """
import os, signal, sys
from pathlib import Path
from foliohost.files import write_atomic
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
write_atomic(Path(sys.argv[1]), "half")
"""


def test_what_a_killed_writer_left_goes_an_hour_later(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", KILLED, str(path)], env=ENVIRONMENT, check=False)
        assert done.returncode == -signal.SIGKILL
    late, early = tmp_path.iterdir()
    os.utime(early, (0, time.time() - 3700))
    others = [tmp_path / ".file.20240101", tmp_path / ".files.abcdefgh.new"]
    for other in others:
        other.touch()
        os.utime(other, (0, 0))
    write_atomic(path, "content")
    assert set(tmp_path.iterdir()) == {path, late, *others}


def test_all_may_read_what_is_written(tmp_path: Path) -> None:
    write_atomic(tmp_path / "file", "content")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "file").read_text() == "content"


def test_what_is_no_file_by_now_is_not_opened(tmp_path: Path) -> None:
    """A mapped file's owner can put a pipe in its place, or a link to a device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    handle = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(handle, b"GGUF" + bytes(28))
        assert engine_of(pipe) == ""
        assert cached(pipe) is None
        with pytest.raises(NoProbe, match="no regular file"):
            glimpse(pipe)
        assert os.read(handle, 64) == b"GGUF" + bytes(28)
    finally:
        os.close(handle)


def test_a_look_at_a_file_leaves_no_time_of_access(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"GGUF" + bytes(28))
    os.utime(path, (1, 2))
    assert engine_of(path) == "GGUF"
    assert cached(path) == 1
    assert path.stat().st_atime == 1

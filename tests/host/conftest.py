# SPDX-License-Identifier: GPL-2.0-only
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foliohost.devices import device_of, device_under
from foliohost.windows import set_device
from tests.host import toucher

PAGES = 2048
"""Of the ``cold`` file."""


@pytest.fixture(scope="session")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file on a disk, of 32 windows of that."""
    path = tmp_path_factory.mktemp("live") / "file"
    device = device_under(path.parent, path.parent.stat())
    # Others than block devices may neither read past the page cache nor count what is read.
    if not device or device.rotational is None or not 0 < device.read_ahead_kb <= 8192:
        pytest.skip("temporary files here are on no disk with a window of up to 8 MiB")
    piece = os.urandom(1 << 20)
    with path.open("wb") as stream:
        for _ in range(max(64, device.read_ahead_kb >> 5)):
            stream.write(piece)
        os.fsync(stream.fileno())
    yield path
    path.unlink()


@pytest.fixture
def cold(tmp_path: Path) -> Path:
    """A file of which nothing is in memory."""
    path = tmp_path / "cold"
    path.write_bytes(random.Random(1).randbytes(PAGES * 4096))
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


@pytest.fixture
def private_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system on a loop device, whose window is nobody else's, with a file of 8 MiB on it."""
    image, place = tmp_path / "image", tmp_path / "disk"
    place.mkdir()
    with image.open("wb") as stream:
        stream.truncate(32 << 20)
    made = subprocess.run(["/sbin/mke2fs", "-q", "-t", "ext4", str(image)], capture_output=True, check=False)
    mounted = made.returncode or subprocess.run(
        ["mount", "-o", "loop", str(image), str(place)], capture_output=True, check=False
    )
    if made.returncode or not isinstance(mounted, subprocess.CompletedProcess) or mounted.returncode:
        pytest.skip("mounting a loop device takes root")
    (place / "file").write_bytes(bytes(range(256)) * (8 << 12))
    os.sync()
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="module")
def quiet_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file of 96 MiB on a loop device, with windows of 128 KiB."""
    image, place = tmp_path_factory.mktemp("image") / "image", tmp_path_factory.mktemp("disk")
    with image.open("wb") as stream:
        stream.truncate(128 << 20)
    for argv in (["/sbin/mke2fs", "-q", "-t", "ext4", str(image)], ["mount", "-o", "loop", str(image), str(place)]):
        if subprocess.run(argv, capture_output=True, check=False).returncode:
            pytest.skip("mounting a loop device takes root")
    (place / "file").write_bytes(os.urandom(96 << 20))
    set_device(device_of(place / "file").attribute, 128)
    os.sync()
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def nobody() -> Iterator[None]:
    """Has the test run by somebody who is not root."""
    ours = os.getresuid()
    if os.geteuid() == 0:
        os.setresuid(65534, 65534, 0)
    yield
    os.setresuid(*ours)


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files ``mountinfo`` that are read from now on: each may have thousands of lines."""
    found: list[Path] = []
    read = Path.read_bytes

    def noted(path: Path) -> bytes:
        if path.name == "mountinfo":
            found.append(path)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    return found


class Toucher:
    """``toucher.py`` as a process of its own."""

    def __init__(self, path: Path, hint: str = "") -> None:
        argv = [sys.executable, toucher.__file__, str(path), hint]
        self._child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(toucher.__file__).parents[2]
        )
        self.pid = int(self._answer())

    def _answer(self) -> str:
        assert self._child.stdout
        return self._child.stdout.readline()

    def tell(self, line: str) -> None:
        """Have it do something, and wait until that is done."""
        assert self._child.stdin
        self._child.stdin.write(f"{line}\n")
        self._child.stdin.flush()
        assert self._answer() == "done\n"

    def end(self) -> None:
        self._child.communicate()


@pytest.fixture
def start() -> Iterator[Callable[..., Toucher]]:
    started: list[Toucher] = []

    def start_one(path: Path, hint: str = "") -> Toucher:
        started.append(Toucher(path, hint))
        return started[-1]

    yield start_one
    for each in started:
        each.end()

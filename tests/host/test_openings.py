# SPDX-License-Identifier: GPL-2.0-only
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from foliohost.devices import HostDevice, device_of
from foliohost.openings import DiskMounts, Opened, Openings, give_back
from foliohost.windows import open_in, set_device
from tests.host.conftest import Toucher
from tests.host.windows import read_kb


@pytest.fixture
def device(private_disk: Path) -> HostDevice:
    found = device_of(private_disk / "file")
    set_device(found.attribute, 1024)
    return found


@pytest.fixture
def openings(device: HostDevice) -> Iterator[Openings]:
    try:
        found = Openings(DiskMounts(device.attribute))
    except OSError as error:
        pytest.skip(f"the kernel does not tell of openings: {error}")
    with closing(found):
        yield found


def test_what_is_opened_while_the_device_has_another_window_gets_its_own_back(
    device: HostDevice, openings: Openings, private_disk: Path, start: Callable[..., Toucher]
) -> None:
    path = private_disk / "file"
    before = start(path)
    openings.forget()
    set_device(device.attribute, 64)
    program, closed, ended = start(path), start(path), start(path)
    set_device(device.attribute, 1024)
    assert read_kb(program, path) == 64
    closed.tell("close")
    found, all_told = openings.found()
    assert all_told
    ended.end()
    assert [file.pid for file in found] == [program.pid, closed.pid, ended.pid]
    assert found[0] == open_in(program.pid, path)
    assert give_back(found) == [Opened(str(path), program.pid, True), Opened(str(path), closed.pid, False)]
    assert [read_kb(each, path) for each in (before, program, closed)] == [1024, 1024, 64]


def test_files_of_other_devices_and_ours_do_not_count(openings: Openings, private_disk: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.touch()
    child = os.posix_spawn("/bin/cat", ["cat", str(other)], os.environ)
    os.waitpid(child, 0)
    (private_disk / "file").read_bytes()
    assert openings.found() == ([], True)


OPEN_ALL = """
import os, sys
for name in os.listdir(sys.argv[1]):
    os.close(os.open(f"{sys.argv[1]}/{name}", os.O_RDONLY))
"""


def test_while_we_do_not_ask_no_more_waits_than_the_kernel_allows(openings: Openings, private_disk: Path) -> None:
    """We may be stopped."""
    most = int(Path("/proc/sys/fs/fanotify/max_queued_events").read_text())
    if most > 50_000:
        pytest.skip(f"it allows {most:,}")
    place = private_disk / "links"
    place.mkdir()
    for number in range(most + 100):
        (place / str(number)).hardlink_to(private_disk / "file")
    openings.forget()
    subprocess.run([sys.executable, "-c", OPEN_ALL, str(place)], check=True)
    assert not openings.found()[1]


@pytest.fixture
def elsewhere(private_disk: Path, tmp_path: Path) -> Iterator[Path]:
    """The same file system at another place; what is opened there is found, whatever happens to the first one."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    subprocess.run(["mount", "--bind", str(private_disk), str(place)], check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def opened_by(program: Toucher, attribute: Path, again: Callable[[], Toucher]) -> list[int]:
    """Which processes have opened a file, of one that is there before and one that comes."""
    with closing(Openings(DiskMounts(attribute))) as openings:
        comes = again()
        found, all_told = openings.found()
        assert all_told
        assert program.pid != comes.pid
        return [file.pid for file in found if file.pid == comes.pid]


def test_openings_by_other_mounts_are_found(
    device: HostDevice, elsewhere: Path, private_disk: Path, start: Callable[..., Toucher]
) -> None:
    """Also if another file system lies over the mount that comes first."""
    first = start(private_disk / "file")
    assert opened_by(first, device.attribute, lambda: start(elsewhere / "file"))
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(private_disk)], check=True)
    try:
        assert opened_by(first, device.attribute, lambda: start(elsewhere / "file"))
    finally:
        subprocess.run(["umount", str(private_disk)], check=True)


def test_names_of_others_mounts_end_nothing(
    device: HostDevice, private_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has a name space of their own chooses them."""
    number = private_disk.stat().st_dev
    mine = f"{os.major(number)}:{os.minor(number)}"
    odd = "a\rb\x0bc\x0cd\x1ce\x85f\u2028g"
    rows = f"50 1 0:70 / /{odd} rw - fuse {odd} rw\n51 1 {mine} / /{odd}\\040h rw - ext4 /dev/x rw\nnonsense\n"
    (tmp_path / "mountinfo").write_bytes(rows.encode())
    monkeypatch.setattr("foliohost.openings._with_other_mounts", lambda: [tmp_path])
    assert DiskMounts(device.attribute).places == {mine: [(51, bytes(tmp_path / "root") + f"/{odd} h".encode())]}


def test_what_is_mounted_is_read_once(device: HostDevice, tables: list[Path], tmp_path: Path) -> None:
    """By whoever has mounts of their own: each file system without a disk has to be looked for there."""
    script = 'for name in 1 2 3; do mkdir "$0/$name"; mount -t tmpfs tmpfs "$0/$name"; done; echo; read -r _'
    argv = ["unshare", "--mount", "sh", "-e", "-c", script, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin and other.stdout
        assert other.stdout.readline()
        assert DiskMounts(device.attribute).places
        other.stdin.close()
    assert tables[0] == Path("/proc/self/mountinfo")
    assert len(set(tables)) == len(tables) > 1


IN_CONTAINER = """
mount --make-rprivate /
umount --lazy "$1"
echo
read -r _
exec 3<"$2"
echo
read -r _
"""


def test_openings_in_a_container_are_found(device: HostDevice, elsewhere: Path, private_disk: Path) -> None:
    """Which has the file system at a place that is nobody else's."""
    argv = ["unshare", "--mount", "sh", "-e", "-c", IN_CONTAINER, "sh", str(private_disk), str(elsewhere / "file")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as container:
        assert container.stdin
        assert container.stdout
        container.stdout.readline()
        mounted = [str(private_disk), str(elsewhere)]
        for place in mounted:
            subprocess.run(["umount", "--lazy", place], check=True)
        try:
            with closing(Openings(DiskMounts(device.attribute))) as openings:
                container.stdin.write(b"\n")
                container.stdin.flush()
                container.stdout.readline()
                found, all_told = openings.found()
            assert all_told
            assert [file.pid for file in found] == [container.pid]
        finally:
            container.stdin.close()
            for place in mounted:  # so that fixtures find what they undo
                subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)

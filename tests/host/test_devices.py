# SPDX-License-Identifier: GPL-2.0-only
import os
import subprocess
from pathlib import Path

import pytest

from foliohost.devices import device_of, find_device, module_was_tried, mounted
from foliohost.errors import NoCure, UsageError
from foliohost.libc import is_btrfs


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """A tree like /sys, with a disk and its partition, a device of NFS, and a pool of btrfs."""
    root = tmp_path / "sys"
    disk = root / "devices/pci/block/sda"
    for name, text in {"queue/read_ahead_kb": "128\n", "queue/rotational": "1\n", "sda1/partition": "1\n"}.items():
        (disk / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / name).write_text(text)
    links = root / "dev/block"
    links.mkdir(parents=True)
    (links / "8:0").symlink_to("../../devices/pci/block/sda")
    (links / "8:1").symlink_to("../../devices/pci/block/sda/sda1")
    for name in ("0:50", "btrfs-1"):
        (root / "devices/virtual/bdi" / name).mkdir(parents=True)
        (root / "devices/virtual/bdi" / name / "read_ahead_kb").write_text("4096\n")
    (root / "class/bdi").mkdir(parents=True)
    (root / "class/bdi/0:50").symlink_to("../../devices/virtual/bdi/0:50")
    pool = root / "fs/btrfs/6a7e"
    (pool / "devices/sdb2").mkdir(parents=True)
    (pool / "bdi").symlink_to("../../../devices/virtual/bdi/btrfs-1")
    return root


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_bytes(
        b"30 1 0:31 / / rw shared:1 - btrfs /dev/sdb2 rw\n"
        b"31 1 0:25 / /tmp rw - tmpfs tmpfs rw\n"
        b"32 1 0:50 / /net rw - nfs4 server:/ rw\n"
        b"33 1 0:51 / /caf\xe9 rw - tmpfs tmpfs rw\n"
    )
    return path


def test_partitions_have_the_window_of_the_disk(sys: Path, mounts: Path) -> None:
    for minor in (0, 1):
        device = find_device(8, minor, False, sys, mounted(mounts))
        assert device
        assert (device.name, device.read_ahead_kb, device.rotational) == ("sda", 128, True)


def test_file_systems_without_a_block_device(sys: Path, mounts: Path) -> None:
    for minor, btrfs, name in ((31, False, "btrfs-1"), (77, True, "btrfs-1"), (50, False, "0:50")):
        device = find_device(0, minor, btrfs, sys, mounted(mounts))
        assert device
        assert (device.name, device.read_ahead_kb, device.rotational) == (name, 4096, None)
    assert find_device(0, 25, False, sys, mounted(mounts)) is None
    assert find_device(9, 9, False, sys, mounted(mounts)) is None


def test_what_only_a_container_has_mounted_is_not_taken_for_the_pool(sys: Path, mounts: Path) -> None:
    mounts.write_text("31 1 0:25 / /tmp rw - tmpfs tmpfs rw\n")
    assert find_device(0, 77, False, sys, mounted(mounts)) is None
    network = find_device(0, 50, False, sys, mounted(mounts))
    assert network
    assert network.name == "0:50"


def test_a_file_system_is_known_for_btrfs_by_its_files(tmp_path: Path) -> None:
    there = subprocess.run(["stat", "-f", "-c", "%t", str(tmp_path)], capture_output=True, text=True, check=True)
    assert is_btrfs(tmp_path) == (there.stdout.strip() == "9123683e")
    assert not is_btrfs(tmp_path / "absent")


def test_names_of_mounts_have_any_characters(sys: Path, mounts: Path) -> None:
    """Whoever may mount something chooses them."""
    odd = "a\rb\x0bc\x0cd\x1ce\x1df\x1eg\x85h\u2028i\xa0j"
    text = f"50 1 0:70 / /{odd} rw - fuse {odd} rw\n51 1 0:71 / /empty rw - tmpfs  rw\nnonsense\n"
    mounts.write_bytes(text.encode() + mounts.read_bytes())
    device = find_device(0, 31, False, sys, mounted(mounts))
    assert device
    assert device.name == "btrfs-1"
    assert find_device(0, 70, False, sys, mounted(mounts)) is None


def test_one_of_two_pools_is_not_guessed(sys: Path, mounts: Path) -> None:
    other = sys / "fs/btrfs/77aa"
    (other / "devices/sdc").mkdir(parents=True)
    (other / "bdi").symlink_to("../../../devices/virtual/bdi/0:50")
    known = find_device(0, 31, False, sys, mounted(mounts))
    assert known
    assert known.name == "btrfs-1"
    assert find_device(0, 77, True, sys, mounted(mounts)) is None


def test_no_file_and_no_window(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no file"):
        device_of(tmp_path / "absent")
    with pytest.raises(NoCure, match="has no read_ahead_kb"):
        device_of(Path("/proc/self/stat"))


def test_an_overlay_has_the_device_of_its_layers(sys: Path, mounts: Path, tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    queue = sys / f"dev/block/{os.major(number)}:{os.minor(number)}/queue"
    queue.mkdir(parents=True)
    (queue / "read_ahead_kb").write_text("512\n")
    (queue / "rotational").write_text("0\n")
    with mounts.open("a") as stream:
        stream.write(f"40 1 0:60 / /one rw - overlay overlay rw,lowerdir=/no/such:{tmp_path},workdir=/w\n")
        stream.write(f"41 1 0:61 / /two rw - overlay overlay rw,lowerdir+=/no/such,upperdir={tmp_path},workdir=/w\n")
        stream.write("42 1 0:62 / /three rw - overlay overlay rw,lowerdir=/no/such\n")
    for minor in (60, 61):
        device = find_device(0, minor, False, sys, mounted(mounts))
        assert device
        assert (device.read_ahead_kb, device.rotational) == (512, False)
    assert find_device(0, 62, False, sys, mounted(mounts)) is None


def test_what_is_mounted_is_read_once_and_only_where_it_tells(sys: Path, tables: list[Path]) -> None:
    assert find_device(8, 1, False, sys)
    assert tables == []
    assert find_device(0, 4095, True, sys)
    assert tables == [Path("/proc/self/mountinfo")]


@pytest.mark.parametrize(
    ("version", "tried"),
    [
        ("#1 SMP PREEMPT_DYNAMIC Debian 6.12.43-1 (2025-08-27)", True),
        ("#1 SMP PREEMPT_DYNAMIC Debian 6.1.147-1 (2025-08-02)", True),
        ("#1 SMP PREEMPT_DYNAMIC Debian 7.2.12-1~bpo13+1 (2026-11-20)", True),
        ("#1 SMP PREEMPT_DYNAMIC Debian 7.3~rc2-1~exp1 (2026-10-01)", True),
        ("#1 SMP PREEMPT_DYNAMIC Debian 6.16.3-1 (2025-09-01)", False),
        ("#28-Ubuntu SMP PREEMPT_DYNAMIC Thu Jul 31 18:32:42 UTC 2025", False),
    ],
)
def test_kernels_that_our_module_was_tried_on(version: str, tried: bool) -> None:
    assert module_was_tried(version) == tried

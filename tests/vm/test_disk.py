# SPDX-License-Identifier: GPL-2.0-only
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foliolab.errors import DiskFull, UsageError
from foliolab.vm.disk import DATA_FILE, DataDisk, Filesystem, publish
from foliolab.vm.guest import Disk, Guest, GuestConfig
from tests.machines import MACHINES

FILE_BYTES = 32 << 20


def read_all(config: GuestConfig, disk: Disk, filesystem: Filesystem, console: Path) -> dict[str, Any]:
    """Touch every page of the disk's file in a fresh guest, and write to the disk as well."""
    with Guest(replace(config, disks=(disk,)), console) as guest:
        guest.run([":mount", "/dev/vda", "/data", filesystem, "noatime"]).checked()
        guest.run([":fill", "/data/other", str(1 << 20)]).checked()
        argv = ["sparse-mmap", "--file", DATA_FILE, "--pattern", "sequential", "--fraction", "1", "--drop-caches"]
        result: dict[str, Any] = json.loads(guest.run(argv).checked().stdout)
    return result


def check_disk(config: GuestConfig, filesystem: Filesystem, place: Path) -> None:
    data = DataDisk(filesystem, FILE_BYTES)
    disk = data.prepare(config)
    assert sorted(path.suffix for path in disk.path.parent.iterdir()) == [".lock", ".qcow2"]
    assert disk.path.stat().st_blocks * 512 < FILE_BYTES / 4

    before = hashlib.sha256(disk.path.read_bytes()).digest()
    result = read_all(config, disk, filesystem, place / "console.log")
    assert result["file_bytes"] == FILE_BYTES
    # A hole, or an extent that was never written, would be read without the device.
    assert FILE_BYTES <= result["read_bytes"] < 1.05 * FILE_BYTES
    assert result["pgpgin_bytes"] == result["read_bytes"]
    assert hashlib.sha256(disk.path.read_bytes()).digest() == before

    assert data.prepare(config) == disk


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: GuestConfig) -> None:
    """A cache without disks, for after the kernel was taken from the developer's own."""
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))


@pytest.mark.boot
@pytest.mark.usefixtures("own_cache")
def test_a_file_on_ext4_stays_as_it_is(config: GuestConfig, tmp_path: Path) -> None:
    check_disk(replace(config, memory_mib=512), "ext4", tmp_path)


@pytest.mark.boot
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("machine", [each for each in MACHINES if "xfs" in each.extras], indirect=True, ids=str)
def test_a_file_on_xfs_stays_as_it_is(config: GuestConfig, tmp_path: Path) -> None:
    check_disk(replace(config, memory_mib=512), "xfs", tmp_path)


STUBS = {"x86_64": bytes.fromhex("c3c3c3c3"), "arm64": bytes.fromhex("c0035fd6")}


@pytest.mark.boot
@pytest.mark.usefixtures("own_cache")
def test_a_file_of_stubs(config: GuestConfig, tmp_path: Path) -> None:
    disk = DataDisk("ext4", 8 << 20, "stubs").prepare(config)
    assert disk.path != DataDisk("ext4", 8 << 20).path(config.arch)
    with Guest(replace(config, disks=(disk,)), tmp_path / "console.log") as guest:
        guest.run([":mount", "/dev/vda", "/data", "ext4", "ro"]).checked()
        assert guest.run([":read", DATA_FILE]).checked().stdout == STUBS[config.arch.name] * (2 << 20)


def test_what_a_kill_has_left_of_another_disk_goes(tmp_path: Path) -> None:
    def make(place: Path) -> Path:
        (place / "disk").touch()
        return place / "disk"

    (tmp_path / "old.partial").mkdir()
    publish(tmp_path / "new.qcow2", "making a disk", make)
    assert {path.name for path in tmp_path.iterdir()} == {"new.qcow2", "new.lock", "old.lock"}


def test_a_size_that_no_file_can_be_written_in(native_config: GuestConfig) -> None:
    with pytest.raises(UsageError, match="multiple of 4096 bytes, not 5000"):
        DataDisk("ext4", 5000).prepare(native_config)


MAKE = """
import contextlib, sys
from pathlib import Path
from foliolab.arch import NATIVE
from foliolab.files import cache_directory
from foliolab.vm import disk
from foliolab.vm.accel import Accelerator
from foliolab.vm.guest import Guest, GuestConfig
kernel, initramfs, hog, *options = sys.argv[1:]

class LateGuest(Guest):
    def __enter__(self):
        super().__enter__()
        with contextlib.suppress(OSError), (cache_directory() / "hog").open("wb", buffering=0) as stream:
            while True:
                stream.write(bytes(4096))
        return self

if hog == "hog":
    disk.Guest = LateGuest
config = GuestConfig(NATIVE, Path(kernel), Path(initramfs), Accelerator("test", tuple(options), patience=20))
try:
    disk.DataDisk("ext4", 1 << 30).prepare(config)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.boot
@pytest.mark.parametrize(("mebibytes", "hog"), [(1, ""), (6, "hog")], ids=["file system", "guest"])
def test_a_full_disk_is_named(native_config: GuestConfig, tmp_path: Path, mebibytes: int, hog: str) -> None:
    """Too little room for the file system; or enough, and then something takes what the guest wanted."""
    script = f'mount -t tmpfs -o size={mebibytes}m none {tmp_path} && exec "$@"'
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    argv += [sys.executable, "-c", MAKE, str(native_config.kernel), str(native_config.initramfs), hog]
    argv += native_config.accelerator.options
    environment = os.environ | {"FOLIOLAB_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(argv, env=environment, capture_output=True, check=False)
    assert done.stdout.decode().startswith(f"{DiskFull.__name__} No space left on the disk that holds {tmp_path}"), done

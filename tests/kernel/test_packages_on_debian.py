# SPDX-License-Identifier: GPL-2.0-only
"""Packages of our kernel on a Debian: installed, booted, found to do what they promise, removed."""

import json
import os
from pathlib import Path

import pytest

from foliolab.arch import NATIVE, X86_64
from foliolab.kernel.build import BuiltKernel
from foliolab.kernel.deb import PackageRequest, build_packages
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.tree import make_ext4
from tests.kernel.debian_machine import DebianMachine, sh

PACKAGES = os.environ.get("FOLIOLAB_PACKAGES", "")
LOADED = Path(__file__).parent / "debian-in-qemu.lsmod"
FILE_BYTES = 320 << 20
OFF = "echo 0 >/sys/kernel/mm/mmap_readahead/adaptive; cd /sys/kernel/debug/mmap_readahead; " + (
    "for rule in hit_* text_* huge_*; do echo 0 >$rule; done"
)
"""As the admin guide has it."""


def times_touched(guest: Guest) -> float:
    """What is read when a page in a hundred is touched at random, over what that is, with windows of 4 MiB."""
    guest.run([":mount", "/dev/vdb", "/data", "ext4", "ro"]).checked()
    sh(guest, "echo 4096 >/sys/block/vdb/queue/read_ahead_kb")
    done = guest.run(["sparse-mmap", "--file", DATA_FILE, "--fraction", "0.01", "--seed", "1", "--drop-caches"])
    guest.run([":umount", "/data"]).checked()
    return int(json.loads(done.checked().stdout)["read_bytes"]) / (FILE_BYTES // 100)


@pytest.mark.boot
@pytest.mark.skipif(
    not PACKAGES or NATIVE is not X86_64,
    reason="takes minutes, and an hour if $FOLIOLAB_PACKAGES, a directory, has no packages yet; x86_64 only",
)
def test_installed_booted_switched_off_and_removed(patched_kernel: BuiltKernel, tmp_path: Path) -> None:
    place = Path(PACKAGES)
    made = sorted(place.glob("linux-*.deb"))
    made = made or list(build_packages(PackageRequest("patched", modules=LOADED), place, Reporter()))
    release = next(file.name for file in made if file.name.startswith("linux-image-"))
    release = release.removeprefix("linux-image-").partition("_")[0]

    bare = GuestConfig(NATIVE, patched_kernel.image, initramfs(guest_programs(NATIVE, Reporter())), choose(NATIVE))
    data = DataDisk("ext4", FILE_BYTES).prepare(bare, Reporter())
    make_ext4(tmp_path / "packages.img", None, place)
    packages = Disk(tmp_path / "packages.img", "raw")
    machine = DebianMachine.made(tmp_path, patched_kernel)

    with machine.booted(tmp_path / "debian.log", data, packages) as guest:
        debians = guest.ready.release
        assert debians.endswith("-amd64")
        stock = times_touched(guest)
        guest.run([":mount", "/dev/vdc", "/data", "ext4", "ro"]).checked()
        sh(guest, "dpkg --install " + " ".join(f"/data/{file.name}" for file in made))
        assert f"vmlinuz-{release}" in sh(guest, "cat /boot/grub/grub.cfg")

    with machine.booted(tmp_path / "on.log", data) as guest:
        assert guest.ready.release == release
        assert times_touched(guest) < 2
        sh(guest, OFF)
        off = times_touched(guest)
        assert off == pytest.approx(stock, rel=0.2)
        assert off > 20
        if len(made) > 1:  # a kernel without modules has no headers for them
            sh(guest, f"test -e /lib/modules/{release}/build/Module.symvers")
        sh(guest, "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&mmap_readahead=off /' /etc/default/grub; update-grub")

    with machine.booted(tmp_path / "off.log", data) as guest:
        assert guest.ready.release == release
        assert "mmap_readahead=off" in sh(guest, "cat /proc/cmdline")
        assert times_touched(guest) == pytest.approx(off, rel=0.02)
        names = " ".join(file.name.partition("_")[0] for file in made)
        sh(guest, f"dpkg --purge {names}")

    with machine.booted(tmp_path / "back.log", data) as guest:
        assert guest.ready.release == debians
        assert sh(guest, "ls /boot /lib/modules; dpkg --get-selections").count(release) == 0

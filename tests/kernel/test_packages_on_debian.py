# SPDX-License-Identifier: GPL-2.0-only
"""Packages of our kernel and of our module on a Debian: installed, booted, found to do what they promise, removed."""

import json
import os
from pathlib import Path

import pytest

from foliolab.arch import NATIVE, X86_64
from foliolab.kernel import module
from foliolab.vm.guest import Guest
from tests.kernel.debian_machine import DebianMachine

PACKAGES = os.environ.get("FOLIOLAB_PACKAGES", "")
"""A directory with what ``./lab kernel deb`` has made."""

FILE = "/var/tmp/file"
FILE_BYTES = 1 << 30
"""Twice the memory of the guest."""
ADAPTIVE = "/sys/kernel/mm/mmap_readahead/adaptive"
RULES_OFF = "cd /sys/kernel/debug/mmap_readahead; for rule in hit_* text_* huge_*; do echo 0 >$rule; done"
"""As the admin guide has it."""


def times_touched(guest: Guest) -> float:
    """What is read when a page in a hundred is touched at random, over what that is, with windows as they are."""
    argv = ["sparse-mmap", "--file", FILE, "--fraction", "0.01", "--seed", "1", "--drop-caches"]
    done = guest.run(argv, 300).checked()
    times = int(json.loads(done.stdout)["read_bytes"]) / (FILE_BYTES // 100)
    print(f"{guest.ready.release} reads {times:.2f} times what is touched")
    return times


def traces(machine: DebianMachine) -> str:
    """What there is of kernels and modules, and in the boot loader's menu."""
    files = "find /boot /lib/modules /usr/src /var/lib/dkms -maxdepth 3 | sort"
    return machine.sh(f"{files}; dpkg --get-selections; grep menuentry /boot/grub/grub.cfg")


def boot_next(machine: DebianMachine, release: str) -> None:
    machine.sh(f"grub-reboot 'Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux {release}'")


@pytest.mark.boot
@pytest.mark.skipif(
    not PACKAGES or NATIVE is not X86_64,
    reason="takes minutes, root, and packages of 'kernel deb' in the directory $FOLIOLAB_PACKAGES; x86_64 only",
)
def test_installed_booted_switched_off_and_removed(tmp_path: Path) -> None:
    made = sorted(Path(PACKAGES).glob("linux-*.deb"))
    names = [file.name.partition("_")[0] for file in made]
    (release,) = (name.removeprefix("linux-image-") for name in names if name.startswith("linux-image-"))
    machine = DebianMachine.made(tmp_path, "trixie", [*made, module.package(tmp_path)])
    machine.sh(f"head --bytes={FILE_BYTES} /dev/zero >{FILE}")
    before = traces(machine)
    assert release not in before

    machine.sh("apt-get --yes install /packages/linux-*.deb; dpkg --audit")
    after = traces(machine)
    assert f"/boot/initrd.img-{release}\n" in after
    assert f"with Linux {release}'" in after
    # The newest is what it boots, and that may be Debian's.
    boot_next(machine, release)
    with machine.booted(tmp_path / "ours.log") as guest:
        assert guest.ready.release == release
        assert guest.run([":read", ADAPTIVE]).checked().stdout == b"1\n"
        assert times_touched(guest) < 2
        guest.run([":write", ADAPTIVE, "0"]).checked()
        times_touched(guest)
        guest.run(["sh", "-e", "-c", RULES_OFF]).checked()
        off = times_touched(guest)
        assert off > 20

    # As DKMS does for modules of others.
    machine.sh(f"depmod {release}; apt-get --yes purge {' '.join(names)}; dpkg --audit")
    assert traces(machine) == before
    machine.sh(f"apt-get --yes install /packages/{module.PACKAGE}_*.deb; dpkg --audit")
    with machine.booted(tmp_path / "module.log") as guest:
        assert f"/lib/modules/{guest.ready.release}\n" in before
        assert times_touched(guest) == pytest.approx(off, rel=0.05)
        guest.run(["modprobe", module.NAME]).checked()
        assert times_touched(guest) < 2
        guest.run(["rmmod", module.NAME]).checked()
        assert times_touched(guest) == pytest.approx(off, rel=0.05)
    machine.sh(f"apt-get --yes purge {module.PACKAGE}; dpkg --audit")
    assert traces(machine) == before

# SPDX-License-Identifier: GPL-2.0-only
"""Packages of our kernel and of our module on a Debian: installed, booted, found to do what they promise, removed."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from foliolab.apt import Downloads, package_field
from foliolab.arch import NATIVE, X86_64
from foliolab.files import cache_directory, made_once
from foliolab.kernel import module, module_package
from foliolab.vm.guest import Guest
from tests.kernel.debian_machine import DebianMachine, administer

SUITES = os.environ.get("FOLIOLAB_DEBIAN", "").split(",")
"""Names of Debian's releases."""
PACKAGES = os.environ.get("FOLIOLAB_PACKAGES", "")
"""A directory with what ``./lab kernel deb`` has made."""

pytestmark = [
    pytest.mark.boot,
    pytest.mark.skipif(
        not SUITES[0] or NATIVE is not X86_64,
        reason="takes minutes, and names of Debian's releases in $FOLIOLAB_DEBIAN: trixie,bookworm; x86_64 only",
    ),
]

FILE = "/var/tmp/file"
FILE_BYTES = 1 << 30
"""Twice the memory of the guest."""
ADAPTIVE = "/sys/kernel/mm/mmap_readahead/adaptive"
SWITCH = "mmap_readahead=off"
LOADED_AT_BOOT = f"/etc/modules-load.d/{module.NAME}.conf"
"""The file by which systemd loads a module at boot."""
REAL_TIME = r"linux-image-[\d.]+(-\d+|\+deb\d+)-rt-amd64"
"""Packages of kernels on which the module is never tried, in all releases of Debian."""


def package_names(files: Iterable[Path]) -> list[str]:
    return [file.name.partition("_")[0] for file in files]


def other_kernel(suite: str) -> list[Path]:
    """Packages of a real-time kernel of this release, and those with its headers."""

    def make(place: Path) -> None:
        with Downloads(place, (suite,)) as packages:
            (image,) = package_names([packages.bring(REAL_TIME, "linux-image-*-rt-amd64")])
            name = image.replace("image", "headers")
            needs = package_field(packages.bring(re.escape(name), name), "Depends")
            for other in re.findall(r"\blinux-(?:headers|kbuild)-\d[\w.+~-]*", needs):
                packages.bring(re.escape(other), other)

    return sorted(made_once(cache_directory() / "packages", f"other-kernel-{suite}", make).glob("*.deb"))


@pytest.fixture(scope="module", params=SUITES)
def debian(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DebianMachine:
    """One that has nothing of ours installed, and a file to touch."""
    place = tmp_path_factory.mktemp(request.param)
    ours = [*Path(PACKAGES).glob("linux-*.deb"), module_package.build_deb(place)]
    machine = DebianMachine.made(place, request.param, [*ours, *other_kernel(request.param)])
    with machine.booted(place / "first.log") as guest:
        administer(guest, f"update-grub; head --bytes={FILE_BYTES} /dev/zero >{FILE}")
    return machine


def times_touched(guest: Guest) -> float:
    """What is read when a page in a hundred is touched at random, over what that is, with windows as they are."""
    argv = ["sparse-mmap", "--file", FILE, "--fraction", "0.01", "--seed", "1", "--drop-caches"]
    done = guest.run(argv, 300).checked()
    times = int(json.loads(done.stdout)["read_bytes"]) / (FILE_BYTES // 100)
    print(f"{guest.ready.release} reads {times:.2f} times what is touched")
    return times


def traces(guest: Guest) -> str:
    """What there is of kernels and modules, and in the boot loader's menu."""
    files = "find /boot /lib/modules /usr/src /var/lib/dkms -maxdepth 3 | sort"
    return administer(guest, f"{files}; dpkg --get-selections; grep menuentry /boot/grub/grub.cfg")


def boot_next(guest: Guest, release: str) -> None:
    """Choose a kernel in the boot loader's menu, for the next boot alone."""
    administer(guest, f"grub-reboot 'Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux {release}'")


@pytest.mark.skipif(not PACKAGES, reason="takes packages of 'kernel deb' in the directory $FOLIOLAB_PACKAGES")
def test_the_kernel_is_installed_booted_switched_off_and_removed(debian: DebianMachine, tmp_path: Path) -> None:
    names = package_names(Path(PACKAGES).glob("linux-*.deb"))
    (release,) = (name.removeprefix("linux-image-") for name in names if name.startswith("linux-image-"))
    machine = debian.copied(tmp_path)
    with machine.booted(tmp_path / "debian.log") as guest:
        own = guest.ready.release
        before = traces(guest)
        assert release not in before
        ours = " ".join(f"/packages/{name}_*.deb" for name in names)
        administer(guest, f"apt-get --yes install {ours}; dpkg --audit")
        after = traces(guest)
        assert f"/boot/initrd.img-{release}\n" in after
        for each in (release, own):
            assert f"with Linux {each}'" in after
        boot_next(guest, release)  # the newest is what it boots, and that may be Debian's

    with machine.booted(tmp_path / "ours.log") as guest:
        assert guest.ready.release == release
        assert guest.run([":read", ADAPTIVE]).checked().stdout == b"1\n"
        assert times_touched(guest) < 2
        guest.run([":write", ADAPTIVE, "0"]).checked()
        off = times_touched(guest)
        assert off > 20
        administer(guest, rf"sed -i.old 's/^GRUB_CMDLINE_LINUX=\"/&{SWITCH} /' /etc/default/grub; update-grub")
        boot_next(guest, release)

    with machine.booted(tmp_path / "off.log") as guest:
        assert guest.ready.release == release
        assert SWITCH in guest.run([":read", "/proc/cmdline"]).checked().stdout.decode().split()
        assert guest.run([":read", ADAPTIVE]).checked().stdout == b"0\n"
        assert times_touched(guest) == pytest.approx(off, rel=0.05)
        administer(guest, "mv /etc/default/grub.old /etc/default/grub")
        boot_next(guest, own)

    with machine.booted(tmp_path / "debian-again.log") as guest:
        assert guest.ready.release == own
        # As DKMS does for modules of others.
        administer(guest, f"depmod {release}; apt-get --yes purge {' '.join(names)}; dpkg --audit")
        assert traces(guest) == before


def check_other_kernel(guest: Guest, files: list[Path]) -> None:
    """A kernel that the module does not know is installed all the same, without the module, which says why."""
    before = administer(guest, "dpkg --get-selections").split()
    new = [file for file in files if package_names([file])[0] not in before]
    names = package_names(new)
    (release,) = (name.removeprefix("linux-image-") for name in names if name.startswith("linux-image-"))
    packages = " ".join(f"/packages/{file.name}" for file in new)
    said = administer(guest, f"apt-get --yes --no-install-recommends install {packages}; dpkg --audit", 900)
    name, _ = module.name_and_version()
    assert f"{name} is skipped: it was not tried on kernels such as {release}, or on" in said
    there = traces(guest)
    assert f"/boot/vmlinuz-{release}\n" in there
    assert f"/boot/initrd.img-{release}\n" in there
    assert f"with Linux {release}'" in there
    status = f"dpkg-query --show --showformat '${{db:Status-Status}}' linux-image-{release}"
    assert administer(guest, status) == "installed"
    assert release not in administer(guest, "dkms status")
    assert not administer(guest, f"find /lib/modules/{release} -name '{module.NAME}.ko*'")
    administer(guest, f"apt-get --yes purge {' '.join(names)}; dpkg --audit", 900)


def test_the_module_is_built_loaded_at_boot_and_removed(debian: DebianMachine, tmp_path: Path) -> None:
    machine = debian.copied(tmp_path)
    with machine.booted(tmp_path / "debian.log") as guest:
        before = traces(guest)
        assert module.NAME not in administer(guest, "lsmod")
        own = times_touched(guest)
        assert own > 20
        administer(guest, f"apt-get --yes install /packages/{module_package.PACKAGE}_*.deb; dpkg --audit; dkms status")
        administer(guest, f"echo {module.NAME} >{LOADED_AT_BOOT}")

    with machine.booted(tmp_path / "module.log") as guest:
        assert guest.run([":read", f"/sys/module/{module.NAME}/initstate"]).checked().stdout == b"live\n"
        assert times_touched(guest) < 2
        check_other_kernel(guest, other_kernel(debian.suite))
        administer(guest, f"rmmod {module.NAME}")
        assert times_touched(guest) == pytest.approx(own, rel=0.05)
        administer(guest, f"rm {LOADED_AT_BOOT}; apt-get --yes purge {module_package.PACKAGE}; dpkg --audit")
        assert traces(guest) == before

# SPDX-License-Identifier: GPL-2.0-only
"""A Debian on a disk with a boot loader, and systemd as its first process: what people have.

Only Debian itself is installed on the host. All else happens in the guest: there alone is a disk that update-grub can
find, and there alone scripts of packages see the kernel that runs, as on people's machines.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from foliolab.arch import NATIVE
from foliolab.errors import LabError
from foliolab.process import run, tool
from foliolab.vm.accel import choose
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.image import guest_programs
from tests.debian_disk import GRUB_IN_TREE, GRUB_ON_DISK, GRUB_PACKAGES, grub_files, make_debian

_PACKAGES = f"linux-image-amd64,linux-headers-amd64,initramfs-tools,zstd,systemd-sysv,udev,dbus,{GRUB_PACKAGES},dkms"

_DISK_BYTES = 8 << 30
_MEMORY_MIB = 512
_JOB_SECONDS = 300
"""How long a command line of an administrator's may take on a real machine."""
_ARGUMENTS = f"console={NATIVE.console} panic=-1 oops=panic printk.time=1 {NATIVE.boot_arguments}"

_FILES = {
    "etc/fstab": "/dev/vda1 / ext4 defaults 0 1\n",
    "etc/hostname": "debian\n",
    **grub_files(_ARGUMENTS),
    # The agent is the first process of a namespace, and its end that of the guest.
    "etc/systemd/system/foliolab-guest.service": """\
[Unit]
After=multi-user.target
SuccessAction=reboot
FailureAction=reboot
[Service]
ExecStart=unshare --mount --pid --fork --kill-child /usr/sbin/foliolab-guest
[Install]
WantedBy=graphical.target
""",
}

_IN_TREE = f"{GRUB_IN_TREE}systemctl --quiet enable foliolab-guest\n"


def administer(guest: Guest, command: str, seconds: float = _JOB_SECONDS) -> str:
    """What a command line prints that systemd runs in a shell of its own, and that has to succeed."""
    argv = ["systemd-run", "--wait", "--pipe", "--quiet", "--setenv=DEBIAN_FRONTEND=noninteractive"]
    output = guest.run([*argv, "sh", "-e", "-c", f"exec 2>&1; {command}"], seconds).checked().stdout.decode()
    print(f"# {command}\n{output}")  # for pytest -rP
    return output


@dataclass(frozen=True)
class DebianMachine:
    """One disk, on which all stays that is written."""

    disk: Disk
    suite: str
    """Debian's release."""

    @contextmanager
    def booted(self, console: Path) -> Iterator[Guest]:
        """Switched on: the boot loader takes a kernel. Shut down after the block."""
        config = GuestConfig(
            NATIVE, None, None, choose(NATIVE), _MEMORY_MIB, disks=(self.disk,), boot_deadline_seconds=180
        )
        with Guest(config, console) as guest:
            yield guest
            guest.power_off()

    def copied(self, place: Path) -> "DebianMachine":
        """Another one, which begins as this one is."""
        copy = place / "debian.qcow2"
        backing = ["-b", str(self.disk.path), "-F", self.disk.format]
        run([tool("qemu-img"), "create", "-q", "-f", "qcow2", *backing, str(copy)], LabError)
        return replace(self, disk=Disk(copy, keep_writes=True))

    @classmethod
    def made(cls, place: Path, suite: str, packages: Iterable[Path]) -> "DebianMachine":
        """Install Debian and a boot loader, with the files of other ``packages`` in /packages."""
        programs = guest_programs(NATIVE)
        copies = {"usr/sbin/foliolab-guest": programs["init"], "usr/bin/sparse-mmap": programs["sparse-mmap"]}
        copies |= {f"packages/{file.name}": file for file in packages}
        steps = {"in_tree": _IN_TREE, "then": GRUB_ON_DISK}
        disk = make_debian(place, suite, _PACKAGES, _DISK_BYTES, texts=_FILES, copies=copies, **steps)
        return cls(Disk(disk, "raw", keep_writes=True), suite)

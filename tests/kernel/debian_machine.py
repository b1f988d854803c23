# SPDX-License-Identifier: GPL-2.0-only
"""A Debian on a disk with a boot loader, and systemd as its first process: what people have. Making one takes no root.

Only Debian itself is installed on the host. All else happens in the guest: there alone is a disk that update-grub can
find, and there alone scripts of packages see the kernel that runs, as on people's machines.
"""

import os
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foliolab.arch import NATIVE
from foliolab.errors import LabError
from foliolab.process import dying_with_parent, run, tool
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.image import guest_programs

_PACKAGES = (
    "linux-image-amd64,linux-headers-amd64,initramfs-tools,zstd,systemd-sysv,udev,dbus,grub-pc-bin,grub2-common,dkms"
)

_DISK_BYTES = 8 << 30
_PARTITION_BYTES = 1 << 20
"""Where the partition begins; before it there is room for the boot loader."""
_BLOCK_BYTES = 4096
_MEMORY_MIB = 512
_MAKING_SECONDS = 1800
_JOB_SECONDS = 300
"""How long a command line of an administrator's may take on a real machine."""
_ARGUMENTS = f"console={NATIVE.console} panic=-1 oops=panic printk.time=1 {NATIVE.boot_arguments}"

_FILES = {
    "etc/fstab": "/dev/vda1 / ext4 defaults 0 1\n",
    "etc/hostname": "debian\n",
    "etc/default/grub": (
        'GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_TERMINAL=console\nGRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX_DEFAULT=""\n'
        f'GRUB_CMDLINE_LINUX="{_ARGUMENTS}"\n'
    ),
    "boot/grub/grub.cfg": f"linux /vmlinuz root=/dev/vda1 {_ARGUMENTS}\ninitrd /initrd.img\nboot\n",
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

_MAKE = """\
tree=$1 files=$2 suite=$3 packages=$4 disk=$5 offset=$6 blocks=$7
mount -t tmpfs -o mode=755 tmpfs "$tree"
mmdebstrap --quiet --mode=root --skip=chroot/mount/sys --variant=minbase "--include=$packages" "$suite" "$tree"
cp --recursive "$files/." "$tree"
mount -t proc proc "$tree/proc"
chroot "$tree" sh -e -c "$8"
umount "$tree/proc"
mke2fs -q -F -t ext4 -b 4096 -O ^metadata_csum_seed,^orphan_file -d "$tree" \
	-E "offset=$offset,lazy_itable_init=0,lazy_journal_init=0" "$disk" "$blocks"
dd "if=$tree/boot/grub/i386-pc/boot.img" "of=$disk" bs=440 count=1 conv=notrunc status=none
dd "if=$tree/boot/grub/core.img" "of=$disk" seek=1 conv=notrunc status=none
"""
"""Of a shell with mounts, and unless it is root's a user namespace, of its own: however it ends, no tree is left.

The last three lines are what grub-install does, which wants a disk that the kernel knows. GRUB of Debian 12 does not
know the two features that the file system does without.
"""
_IN_TREE = """\
cp --recursive /usr/lib/grub/i386-pc /boot/grub
grub-editenv - create
grub-mkimage --format=i386-pc --output=/boot/grub/core.img '--prefix=(hd0,msdos1)/boot/grub' biosdisk part_msdos ext2
systemctl --quiet enable foliolab-guest
"""


def administer(guest: Guest, command: str) -> str:
    """What a command line prints that systemd runs in a shell of its own, and that has to succeed."""
    argv = ["systemd-run", "--wait", "--pipe", "--quiet", "--setenv=DEBIAN_FRONTEND=noninteractive"]
    output = guest.run([*argv, "sh", "-e", "-c", f"exec 2>&1; {command}"], _JOB_SECONDS).checked().stdout.decode()
    print(f"# {command}\n{output}")  # for pytest -rP
    return output


@dataclass(frozen=True)
class DebianMachine:
    """One disk, on which all stays that is written."""

    disk: Disk

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
        return DebianMachine(Disk(copy, keep_writes=True))

    @classmethod
    def made(cls, place: Path, suite: str, packages: Iterable[Path]) -> "DebianMachine":
        """Install Debian and a boot loader, with the files of other ``packages`` in /packages.

        Its menu has one kernel, until update-grub makes the real one in the guest.
        """
        files = place / "files"
        for name, text in _FILES.items():
            (files / name).parent.mkdir(parents=True, exist_ok=True)
            (files / name).write_text(text)
        programs = guest_programs(NATIVE, Reporter())
        copies = {"usr/sbin/foliolab-guest": programs["init"], "usr/bin/sparse-mmap": programs["sparse-mmap"]}
        copies |= {f"packages/{file.name}": file for file in packages}
        for name, path in copies.items():
            (files / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, files / name)
        disk = place / "debian.img"
        _make_disk(disk, place / "tree", files, suite)
        return cls(Disk(disk, "raw", keep_writes=True))


def _make_disk(disk: Path, tree: Path, files: Path, suite: str) -> None:
    """One partition, with an ext4 file system."""
    size = _DISK_BYTES - _PARTITION_BYTES
    entry = struct.pack("<B3xB3xII", 0x80, 0x83, _PARTITION_BYTES // 512, size // 512)
    with disk.open("wb") as stream:
        stream.truncate(_DISK_BYTES)
        stream.seek(446)
        stream.write(entry + bytes(48) + b"\x55\xaa")
    tree.mkdir()
    for name in ("mmdebstrap", "mke2fs"):
        tool(name)
    # With the first process of a PID namespace all others of it die, and with the last one of them the mounts.
    argv = [tool("unshare"), "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]
    if os.geteuid():
        tool("newuidmap")
        argv += ["--user", "--map-root-user", "--map-auto"]
    argv += ["sh", "-e", "-c", _MAKE, "sh", str(tree), str(files), suite, _PACKAGES]
    argv += [str(disk), str(_PARTITION_BYTES), str(size // _BLOCK_BYTES), _IN_TREE]
    settings = os.environ | {"LC_ALL": "C.UTF-8", "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run(
        dying_with_parent(argv), env=settings, capture_output=True, text=True, check=False, timeout=_MAKING_SECONDS
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"

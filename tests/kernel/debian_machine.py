# SPDX-License-Identifier: GPL-2.0-only
"""A Debian on a disk with a boot loader: what people have, as far as their kernels go. Making one takes root.

Packages are installed and removed in a chroot, by their own scripts, since emulation takes ten times as long. The
first process of a guest is the lab's: what is to be done there comes through the control port, as in other guests.
"""

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

_PACKAGES = "linux-image-amd64,linux-headers-amd64,initramfs-tools,zstd,grub-pc-bin,grub2-common,dkms"

_DISK_BYTES = 8 << 30
_PARTITION_BYTES = 1 << 20
"""Where the partition begins; before it there is room for the boot loader."""
_MEMORY_MIB = 512
_SECONDS = 1800
"""How long anything in a chroot may take."""
_INIT = "/usr/sbin/foliolab-init"
_ARGUMENTS = (
    f"root=/dev/vda1 console={NATIVE.console} init={_INIT} panic=-1 oops=panic printk.time=1 {NATIVE.boot_arguments}"
)

_FILES = {
    "etc/fstab": "/dev/vda1 / ext4 defaults 0 1\n",
    "etc/default/grub": (
        'GRUB_TIMEOUT=0\nGRUB_TERMINAL=serial\nGRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX_DEFAULT=""\n'
        f'GRUB_CMDLINE_LINUX="{_ARGUMENTS}"\n'
    ),
    _INIT[1:]: "#!/bin/sh\nmodprobe virtio_console\nmount -o remount,rw /\nexec /usr/sbin/foliolab-guest\n",
}

_MOUNTED = """\
mount -o "loop,offset=$1" "$2" "$3"
place=$3
shift 3
"$@"
tries=0
until umount --recursive "$place" 2>/dev/null; do  # DKMS leaves a process behind, for seconds
	test $((tries += 1)) -lt 10
	sleep 1
done
"""
"""Of a shell with mounts of its own: runs the arguments behind the first three. However it ends, nothing is left."""
_CHROOT = """\
loop=$(findmnt --noheadings --output SOURCE "$1")
cd "$1"
mount --bind /proc proc
mount --bind /sys sys
mount -t tmpfs tmpfs dev
for each in full null ptmx random tty urandom zero; do cp -R /dev/$each dev; done
mkdir dev/pts
mount --bind /dev/pts dev/pts
cp -R "$loop" dev/debian
ln -s debian "dev/${loop#/dev/}"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
chroot . sh -e -c "$2" 2>&1
"""
"""Of a shell whose first argument is the mounted root: runs the second there. GRUB would refuse a loop device."""

_GRUB = (
    "mkdir --parents /boot/grub; cp --recursive /usr/lib/grub/i386-pc /boot/grub; grub-editenv - create; "
    "grub-mkimage --format=i386-pc --output=/boot/grub/core.img '--prefix=(hd0,msdos1)/boot/grub' "
    "biosdisk part_msdos ext2; update-grub"
)
_BOOT_LOADER = """\
dd if="$1/i386-pc/boot.img" of="$2" bs=440 count=1 conv=notrunc status=none
dd if="$1/core.img" of="$2" seek=1 conv=notrunc status=none
"""
"""What grub-install does, which looks for the disk behind a partition, and a loop device of one has none."""


@dataclass(frozen=True)
class DebianMachine:
    """One disk, on which all stays that is written."""

    disk: Path

    @contextmanager
    def booted(self, console: Path) -> Iterator[Guest]:
        """Switched on: the boot loader takes a kernel. Switched off after the block."""
        disks = (Disk(self.disk, "raw", keep_writes=True),)
        config = GuestConfig(NATIVE, None, None, choose(NATIVE), _MEMORY_MIB, disks=disks, boot_deadline_seconds=180)
        with Guest(config, console) as guest:
            yield guest
            guest.run(["mount", "-o", "remount,ro", "/"]).checked()
            guest.power_off()

    def sh(self, command: str) -> str:
        """What a command line prints that a shell runs in a chroot, and that has to succeed. The machine is off."""
        place = self.disk.with_suffix(".mounted")
        output = self._mounted("sh", "-e", "-c", _CHROOT, "sh", str(place), command)
        print(f"# {command}\n{output}")  # for pytest -rP
        return output

    @classmethod
    def made(cls, place: Path, suite: str, packages: Iterable[Path]) -> "DebianMachine":
        """Install Debian and a boot loader, with the files of other ``packages`` in /packages."""
        machine = cls(place / "debian.img")
        tree = place / "tree"
        (tree / "packages").mkdir(parents=True)
        for file in packages:
            shutil.copy2(file, tree / "packages")
        for name, text in _FILES.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        (tree / _INIT[1:]).chmod(0o755)
        programs = guest_programs(NATIVE, Reporter())
        shutil.copy2(programs["init"], tree / "usr/sbin/foliolab-guest")
        (tree / "usr/bin").mkdir()
        shutil.copy2(programs["sparse-mmap"], tree / "usr/bin")

        _make_disk(machine.disk)
        root = machine.disk.with_suffix(".mounted")
        root.mkdir()
        install = [tool("mmdebstrap"), "--quiet", "--mode=root", "--variant=minbase"]
        machine._mounted(*install, f"--include={_PACKAGES}", suite, str(root))
        machine._mounted("cp", "--recursive", f"{tree}/.", str(root))
        machine.sh(_GRUB)
        machine._mounted("sh", "-e", "-c", _BOOT_LOADER, "sh", f"{root}/boot/grub", str(machine.disk))
        return machine

    def _mounted(self, *command: str) -> str:
        # With the first process of a PID namespace all others of it die, and with the last one of them the mounts.
        argv = [tool("unshare"), "--mount", "--pid", "--fork", "--kill-child", "sh", "-e", "-c", _MOUNTED]
        argv += ["sh", str(_PARTITION_BYTES), str(self.disk), str(self.disk.with_suffix(".mounted")), *command]
        done = subprocess.run(dying_with_parent(argv), capture_output=True, text=True, check=False, timeout=_SECONDS)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


def _make_disk(disk: Path) -> None:
    """One partition, with an ext4 file system."""
    start, size = _PARTITION_BYTES // 512, (_DISK_BYTES - _PARTITION_BYTES) // 512
    entry = struct.pack("<B3xB3xII", 0x80, 0x83, start, size)
    with disk.open("wb") as stream:
        stream.truncate(_DISK_BYTES)
        stream.seek(446)
        stream.write(entry + bytes(48) + b"\x55\xaa")
    argv = [tool("mke2fs"), "-q", "-F", "-t", "ext4", "-b", "4096"]
    argv += ["-E", f"offset={_PARTITION_BYTES},lazy_itable_init=0,lazy_journal_init=0"]
    run([*argv, str(disk), str(size // 8)], LabError)

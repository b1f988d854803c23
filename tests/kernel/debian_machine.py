# SPDX-License-Identifier: GPL-2.0-only
"""A small Debian on a disk with a boot loader, made without root: what people have, as far as their kernels go.

Only its first process is the lab's: what is to be done there comes through the control port, as in other guests.
"""

import shlex
import shutil
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foliolab.arch import NATIVE
from foliolab.errors import LabError
from foliolab.kernel.build import BuiltKernel
from foliolab.process import run, tool
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.image import guest_programs
from foliolab.vm.packages import Package, fetch

SUITE = "bookworm"
_ESSENTIAL = (
    *("base-files", "base-passwd", "bash", "bsdutils", "coreutils", "dash", "debianutils", "diffutils", "dpkg"),
    *("findutils", "grep", "gzip", "hostname", "init-system-helpers", "libc-bin", "mawk", "mount", "ncurses-base"),
    *("ncurses-bin", "perl-base", "sed", "sysvinit-utils", "tar", "util-linux"),
)
"""Of what no package names among its dependencies, because no Debian is without."""
_PACKAGES = (*_ESSENTIAL, "grub-pc-bin", "grub2-common", "initramfs-tools", "linux-image-cloud-amd64")
_FIRST = ("base-passwd", "base-files", "dpkg", "libc6", "perl-base", "mawk", "debconf")
"""What the scripts of all others use, in the order in which they can be installed."""

_DISK_BYTES = 3 << 30
_PARTITION_BYTES = 1 << 20
"""Where the partition begins; before it there is room for the boot loader."""
_COMMAND_LINE = f"console={NATIVE.console} panic=-1 oops=panic printk.time=1"
_MODULES = ("ext4", "virtio_pci", "virtio_blk", "virtio_console")
_INSTALL_SECONDS = 600

_FILES = {
    "etc/fstab": "/dev/vda1 / ext4 defaults 0 1\n",
    "etc/default/grub": (
        "GRUB_TIMEOUT=0\nGRUB_TERMINAL=serial\nGRUB_DISABLE_OS_PROBER=true\n"
        f'GRUB_CMDLINE_LINUX_DEFAULT=""\nGRUB_CMDLINE_LINUX="{_COMMAND_LINE}"\n'
    ),
    # Debian's choice, most modules that there are, takes minutes to compress under emulation.
    "etc/initramfs-tools/conf.d/small": "MODULES=list\nCOMPRESS=gzip\n",
    "etc/initramfs-tools/modules": "".join(f"{name}\n" for name in _MODULES),
    "var/lib/dpkg/status": "",
    "var/lib/dpkg/available": "",
}


@dataclass(frozen=True)
class DebianMachine:
    """One disk, on which all stays that is written."""

    disk: Path

    @contextmanager
    def booted(self, console: Path, *others: Disk) -> Iterator[Guest]:
        """Switched on: the boot loader takes the kernel that it takes by default. Switched off after the block."""
        with Guest(self._config(None, *others), console) as guest:
            yield guest
            guest.power_off()

    def _config(self, kernel: Path | None, *others: Disk) -> GuestConfig:
        disks = (Disk(self.disk, "raw", keep_writes=True), *others)
        # The lab's kernel has all built in that it takes to find its root.
        root = "root=/dev/vda1 rw" if kernel else ""
        return GuestConfig(NATIVE, kernel, None, choose(NATIVE), 1024, disks=disks, boot_arguments=root)

    @classmethod
    def made(cls, place: Path, kernel: BuiltKernel) -> "DebianMachine":
        """Install everything by dpkg, in a guest that runs on a ``kernel`` of the lab's."""
        packages = fetch(NATIVE, _PACKAGES, Reporter(), SUITE)
        machine = cls(place / "debian.img")
        tree = place / "tree"
        _fill(tree, packages)
        _make_disk(machine.disk, tree)
        shutil.rmtree(tree)
        with Guest(machine._config(kernel.image), place / "install.log") as guest:
            for command in _installation(packages):
                sh(guest, command)
            guest.power_off()
        return machine


def sh(guest: Guest, command: str) -> str:
    """What a command line prints that is run by a shell and has to succeed."""
    script = f"export DEBIAN_FRONTEND=noninteractive LC_ALL=C; {command}"
    done = guest.run(["sh", "-e", "-c", script], _INSTALL_SECONDS)
    output = (done.stdout + done.stderr).decode(errors="replace")
    assert done.status == 0, f"{command}: {output}"
    return done.stdout.decode()


def _fill(tree: Path, packages: Sequence[Package]) -> None:
    """Unpack what dpkg needs to run, beside all package files."""
    for name in ("bin", "lib", "lib64", "sbin"):
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    for name in ("archives", "dev", "proc", "sys", "tmp", "data", "var/lib/dpkg/info", "var/lib/dpkg/updates"):
        (tree / name).mkdir(parents=True)
    unpack = [tool("tar", "tar"), "--extract", "--keep-directory-symlink", "--no-same-owner", "--directory", str(tree)]
    for package in packages:
        shutil.copyfile(package.file, tree / "archives" / package.file.name)
        if not package.file.name.startswith("linux-image-"):
            run(unpack, LabError, stdin=run([tool("dpkg-deb", "dpkg"), "--fsys-tarfile", str(package.file)], LabError))
    for name, text in _FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    programs = guest_programs(NATIVE, Reporter())
    shutil.copy2(programs["init"], tree / "usr/sbin/init")
    shutil.copy2(programs["sparse-mmap"], tree / "usr/bin/sparse-mmap")


def _make_disk(disk: Path, tree: Path) -> None:
    """A partition with an ext4 file system of the tree."""
    start, size = _PARTITION_BYTES // 512, (_DISK_BYTES - _PARTITION_BYTES) // 512
    entry = struct.pack("<B3xB3xII", 0x80, 0x83, start, size)
    with disk.open("wb") as stream:
        stream.truncate(_DISK_BYTES)
        stream.seek(446)
        stream.write(entry + bytes(48) + b"\x55\xaa")
    argv = [tool("mke2fs", "e2fsprogs"), "-q", "-F", "-t", "ext4", "-b", "4096", "-d", str(tree)]
    argv += ["-E", f"offset={_PARTITION_BYTES}", str(disk), str(size // 8)]
    run(argv, LabError)


def _installation(packages: Sequence[Package]) -> Iterator[str]:
    """What makes a Debian of the tree, step by step."""
    files = {package.file.name.partition("_")[0]: f"/archives/{package.file.name}" for package in packages}
    # Whoever has unpacked it owns it.
    yield "chown -h -R 0:0 /archives /etc /usr /var /tmp /data"
    for name in _FIRST:
        yield f"dpkg --force-depends --force-confold --install {shlex.quote(files[name])}"
    others = " ".join(shlex.quote(file) for name, file in files.items() if name not in _FIRST)
    yield f"dpkg --force-depends --force-confold --unpack {others}"
    yield "dpkg --force-confold --configure --pending"
    yield "grub-install --target=i386-pc /dev/vda"
    yield "update-grub"
    yield "rm -r /archives"

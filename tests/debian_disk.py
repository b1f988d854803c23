# SPDX-License-Identifier: GPL-2.0-only
"""Disks with a Debian and systemd, for guests that start as people's machines do. Making one takes no root."""

import os
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

from foliolab.process import dying_with_parent, tool

_PARTITION_BYTES = 1 << 20
"""Where the partition begins; before it there is room for a boot loader."""
_BLOCK_BYTES = 4096
_MAKING_SECONDS = 1800

MAKE = """\
tree=$1 files=$2 suite=$3 packages=$4 disk=$5 offset=$6 blocks=$7
mount -t tmpfs -o mode=755 tmpfs "$tree"
mmdebstrap --quiet --mode=root --skip=chroot/mount/sys --variant=minbase "--include=$packages" "$suite" "$tree"
cp --recursive "$files/." "$tree"
mount -t proc proc "$tree/proc"
chroot "$tree" sh -e -c "$8"
umount "$tree/proc"
mke2fs -q -F -t ext4 -b 4096 -O ^metadata_csum_seed,^orphan_file -d "$tree" \
	-E "offset=$offset,lazy_itable_init=0,lazy_journal_init=0" "$disk" "$blocks"
"""
"""For a shell in its own mount namespace, and user namespace if not root: the mounts end with it.

GRUB of Debian 12 does not know the two features that the file system does without.
"""

GRUB_IN_TREE = """\
cp --recursive /usr/lib/grub/i386-pc /boot/grub
grub-editenv - create
grub-mkimage --format=i386-pc --output=/boot/grub/core.img '--prefix=(hd0,msdos1)/boot/grub' biosdisk part_msdos ext2
"""
GRUB_ON_DISK = """\
dd "if=$tree/boot/grub/i386-pc/boot.img" "of=$disk" bs=440 count=1 conv=notrunc status=none
dd "if=$tree/boot/grub/core.img" "of=$disk" seek=1 conv=notrunc status=none
"""
"""What grub-install does, which wants a disk that the kernel knows. It takes the packages of GRUB_PACKAGES."""
GRUB_PACKAGES = "grub-pc-bin,grub2-common"


def grub_files(arguments: str) -> dict[str, str]:
    """A menu with one kernel, until update-grub makes the real one in the guest; ``arguments`` are the kernel's."""
    return {
        "etc/default/grub": (
            "GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_TERMINAL=console\nGRUB_DISTRIBUTOR=Debian\n"
            f'GRUB_CMDLINE_LINUX_DEFAULT=""\nGRUB_CMDLINE_LINUX="{arguments}"\n'
        ),
        "boot/grub/grub.cfg": f"linux /vmlinuz root=/dev/vda1 {arguments}\ninitrd /initrd.img\nboot\n",
    }


def make_debian(
    place: Path,
    suite: str,
    packages: str,
    size_bytes: int,
    *,
    texts: Mapping[str, str],
    copies: Mapping[str, Path],
    in_tree: str,
    then: str,
) -> Path:
    """Install Debian on ``disk.img`` in ``place``: one partition, with an ext4 file system. Returns that file.

    ``texts`` and ``copies`` are files by their names there. ``in_tree`` is run by a shell of the new system, and
    ``then`` by the one that has made it, where $tree and $disk are.
    """
    disk, tree, files = (place / name for name in ("disk.img", "tree", "files"))
    for name in (*texts, *copies):
        (files / name).parent.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (files / name).write_text(text)
    for name, path in copies.items():
        shutil.copy2(path, files / name)
    size = size_bytes - _PARTITION_BYTES
    entry = struct.pack("<B3xB3xII", 0x80, 0x83, _PARTITION_BYTES // 512, size // 512)
    with disk.open("wb") as stream:
        stream.truncate(size_bytes)
        stream.seek(440)
        stream.write(b"lab1\0\0" + entry + bytes(48) + b"\x55\xaa")
    tree.mkdir()
    for name in ("mmdebstrap", "mke2fs"):
        tool(name)
    # When the first process of a PID namespace ends, all others are killed, and the mounts go with the last one.
    argv = [tool("unshare"), "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]
    if os.geteuid():
        tool("newuidmap")
        argv += ["--user", "--map-root-user", "--map-auto"]
    argv += ["sh", "-e", "-c", f"{MAKE}{then}", "sh", str(tree), str(files), suite, packages]
    argv += [str(disk), str(_PARTITION_BYTES), str(size // _BLOCK_BYTES), in_tree]
    settings = os.environ | {"LC_ALL": "C.UTF-8", "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run(
        dying_with_parent(argv), env=settings, capture_output=True, text=True, check=False, timeout=_MAKING_SECONDS
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return disk

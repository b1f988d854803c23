# SPDX-License-Identifier: GPL-2.0-only
"""A Debian in QEMU that stands in for a machine: firmware, systemd, a watchdog, and ssh. It resets as machines do."""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import LabError
from foliolab.files import cache_directory, digest, made_once
from foliolab.process import dying_with_parent, run, tool
from tests.debian_disk import GRUB_IN_TREE, GRUB_ON_DISK, GRUB_PACKAGES, MAKE, grub_files, make_debian

_PACKAGES = (
    "linux-image-amd64,initramfs-tools,systemd-sysv,udev,openssh-server,kexec-tools,e2fsprogs,xfsprogs,util-linux,kmod,"
    f"procps,systemd-boot,{GRUB_PACKAGES}"
)
_DISK_BYTES = 12 << 30
_SPARE_BYTES = 4 << 30
_MEMORY_MIB = 2048
_BOOT_SECONDS = 900
_ARGUMENTS = "ro console=ttyS0 quiet no_timer_check watchdog.stop_on_reboot=0 systemd.default_timeout_start_sec=900"

_FILES = {
    **grub_files(_ARGUMENTS),
    "etc/fstab": "/dev/vda1 / ext4 defaults 0 1\n",
    "etc/hostname": "stand-in\n",
    "etc/hosts": "127.0.0.1 localhost stand-in\n",
    "etc/systemd/network/10-all.network": "[Match]\nType=ether\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n",
    "etc/modules-load.d/watchdog.conf": "i6300esb\n",
}

_IN_TREE = f"""\
{GRUB_IN_TREE}\
chmod 700 /root/.ssh
systemctl --quiet enable systemd-networkd ssh
systemctl --quiet mask kexec-load kexec systemd-networkd-wait-online getty@tty1 apt-daily.timer
"""
_TAKE_KERNEL = """\
cp "$tree"/boot/vmlinuz-* "${disk%/*}/vmlinuz"
cp "$tree"/boot/initrd.img-* "${disk%/*}/initrd.img"
cp "$tree"/usr/lib/systemd/boot/efi/systemd-bootx64.efi "${disk%/*}/"
"""
_MAKE_ESP = """\
echo 'label: gpt
2048,,U' | sfdisk --quiet "$1"
mkfs.vfat --offset 2048 "$1" "$(($2 / 1024 - 2048))" >/dev/null
mmd -i "$1@@1M" EFI EFI/BOOT loader loader/entries
mcopy -i "$1@@1M" "$3/systemd-bootx64.efi" ::EFI/BOOT/BOOTX64.EFI
mcopy -i "$1@@1M" "$3/vmlinuz" "$3/initrd.img" ::
printf 'default debian.conf\\n' | mcopy -i "$1@@1M" - ::loader/loader.conf
printf 'linux /vmlinuz\\ninitrd /initrd.img\\noptions %s\\n' "$4" | mcopy -i "$1@@1M" - ::loader/entries/debian.conf
"""
"""For a shell: a disk for EFI with so many bytes, from the cache's directory, and the kernel's arguments."""
_FIRMWARE = Path("/usr/share/OVMF")
_ESP_BYTES = 256 << 20


@dataclass(frozen=True)
class StandIn:
    """One that is not running."""

    place: Path
    """Of its disk, its firmware's memory and its console; the kernel that it starts with is also in ``made``."""
    made: Path
    port: int
    efi: bool
    """Whether EFI and systemd-boot start it, instead of a BIOS and GRUB."""

    @property
    def ssh(self) -> str:
        """Words that ssh takes to get there."""
        return f"-F {self.place / 'ssh_config'} stand-in"

    @property
    def release(self) -> str:
        """Of its own kernel."""
        found, *_ = re.findall(rb"([\w.+~-]+) \(debian-kernel@", (self.made / "vmlinuz").read_bytes())
        return str(found, "ascii")

    @property
    def console(self) -> str:
        """The log so far."""
        return (self.place / "console.log").read_text(errors="replace")

    def command(self) -> list[str]:
        memory = self.place / "erst"
        argv = [tool("qemu-system-x86_64"), "-nodefaults", "-no-user-config", "-display", "none"]
        argv += ["-machine", "q35", "-cpu", "max", "-accel", "tcg,thread=single", "-m", f"{_MEMORY_MIB}M", "-smp", "2"]
        argv += ["-drive", f"file={self.place / 'disk.qcow2'},if=none,id=disk,cache=unsafe"]
        argv += ["-device", f"virtio-blk-pci,drive=disk,bootindex={int(self.efi)}"]
        argv += ["-drive", f"file={self.place / 'spare'},format=raw,if=none,id=spare,cache=unsafe"]
        argv += ["-device", "virtio-blk-pci,drive=spare,serial=spare"]
        if self.efi:
            argv += ["-drive", f"file={_FIRMWARE / 'OVMF_CODE_4M.fd'},format=raw,if=pflash,readonly=on"]
            argv += ["-drive", f"file={self.place / 'variables'},format=raw,if=pflash"]
            argv += ["-drive", f"file={self.place / 'esp'},format=raw,if=none,id=esp,cache=unsafe"]
            argv += ["-device", "virtio-blk-pci,drive=esp,bootindex=0"]
        argv += ["-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22"]
        argv += ["-device", "virtio-net-pci,netdev=net", "-device", "virtio-rng-pci"]
        argv += ["-device", "i6300esb", "-action", "watchdog=reset", "-global", "ICH9-LPC.noreboot=false"]
        argv += ["-object", f"memory-backend-file,id=erst,mem-path={memory},size=64K,share=on"]
        argv += ["-device", "acpi-erst,memdev=erst"]
        argv += ["-serial", f"file:{self.place / 'console.log'}"]
        return argv

    @contextmanager
    def switched_on(self) -> Iterator[None]:
        """Running until the end of the block, which is a power cut."""
        with subprocess.Popen(dying_with_parent(self.command()), stdin=subprocess.DEVNULL) as qemu:
            try:
                self.wait()
                yield
            finally:
                qemu.kill()

    def wait(self) -> None:
        """Until it answers by ssh."""
        deadline = time.monotonic() + _BOOT_SECONDS
        while time.monotonic() < deadline:
            with suppress(LabError):
                self.run("true")
                return
            time.sleep(1)
        raise TimeoutError(f"The stand-in does not answer: {self.console[-500:]}")

    def run(self, command: str) -> str:
        """What a command line prints there, which has to succeed."""
        return run(["ssh", *self.ssh.split(), command], LabError).decode()


def stand_in(place: Path, *, efi: bool = False) -> StandIn:
    """A new one, whose disk is as Debian installs it."""
    made = _made()
    backing = ["-b", str(made / "disk.img"), "-F", "raw"]
    run([tool("qemu-img"), "create", "-q", "-f", "qcow2", *backing, str(place / "disk.qcow2")], LabError)
    with (place / "erst").open("wb") as stream:
        stream.truncate(64 << 10)
    with (place / "spare").open("wb") as stream:
        stream.truncate(_SPARE_BYTES)
    if efi:
        for name in ("sfdisk", "mkfs.vfat", "mmd"):
            tool(name)
        shutil.copy(Path(tool("/usr/share/OVMF/OVMF_CODE_4M.fd")).with_name("OVMF_VARS_4M.fd"), place / "variables")
        esp = place / "esp"
        with esp.open("wb") as stream:
            stream.truncate(_ESP_BYTES)
        words = [str(esp), str(_ESP_BYTES), str(made), f"root=/dev/vda1 {_ARGUMENTS}"]
        run(["sh", "-ec", _MAKE_ESP, "sh", *words], LabError)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shutil.copy(made / "key", place / "key")
    (place / "key").chmod(0o600)
    (place / "ssh_config").write_text(
        f"Host stand-in\nHostName 127.0.0.1\nPort {port}\nUser root\nIdentityFile {place / 'key'}\n"
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\nConnectTimeout 10\n"
    )
    return StandIn(place, made, port, efi)


def _made() -> Path:
    """The cache's directory with a disk, kernel and key."""

    def make(partial: Path) -> None:
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(partial / "key")], LabError)
        copies = {"root/.ssh/authorized_keys": partial / "key.pub"}
        steps = {"in_tree": _IN_TREE, "then": f"{GRUB_ON_DISK}{_TAKE_KERNEL}"}
        make_debian(partial, "bookworm", _PACKAGES, _DISK_BYTES, texts=_FILES, copies=copies, **steps)

    key = digest([MAKE, _IN_TREE, GRUB_ON_DISK, _TAKE_KERNEL, _PACKAGES, *_FILES.values()])
    return made_once(cache_directory() / "stand-ins", f"debian-{key}", make)

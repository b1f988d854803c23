# SPDX-License-Identifier: GPL-2.0-only
"""Mirrors of Debian packages on this machine, for the real apt."""

import hashlib
import lzma
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

KERNEL_RELEASE = "7.3.4+deb13-amd64"
_MODULES = {
    "drivers/virtio/virtio_blk.ko": b"",
    "drivers/virtio/virtio-ring.ko.xz": b"",
    "drivers/char/virtio_console.ko": b"depends=virtio-ring",
    "crypto/crc32c_generic.ko": b"",
    "fs/jbd2.ko.xz": b"depends=",
    "fs/crc_old.ko": b"",
    "fs/ext4.ko.xz": b"depends=jbd2\0softdep=pre: crc-old post: other",
    "fs/other.ko": b"",
}
"""Of a kernel: path and what the module says of itself. virtio_pci is built in."""


class Mirror:
    """Packages that say nothing but their name and version, in one file each; ``configuration`` is for APT_CONFIG."""

    def __init__(self, directory: Path) -> None:
        self._pool = directory / "pool"
        self._pool.mkdir(parents=True)
        self._entries: dict[tuple[str, str], str] = {}
        sources = directory / "sources.list"
        sources.write_text(f"deb [trusted=yes] copy:{self._pool} ./\n")
        self.configuration = directory / "apt.conf"
        self.configuration.write_text(f'Dir::Etc::SourceList "{sources}";\nDir::Etc::SourceParts "-";\n')
        self._publish()

    def add(
        self, name: str, version: str, architecture: str, *fields: str, file: str = "", content: bytes = b""
    ) -> Path:
        """Add a package, or a new version of it; ``file`` is where it has its file, and ``content`` what that holds."""
        tree = self._pool.parent / "tree" / f"{name}_{version}_{architecture}"
        path = tree / (file or f"usr/share/{name}")
        path.parent.mkdir(parents=True)
        path.write_bytes(content or f"{name} {version}\n".encode())
        control = [f"Package: {name}", f"Version: {version}", f"Architecture: {architecture}", *fields]
        described = "\n".join([*control, "Maintainer: Nobody <nobody@example.org>", "Description: a test"])
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text(f"{described}\n")
        package = self._pool / f"{tree.name}.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", str(tree), str(package)], check=True)
        self._enter(name, architecture, described, package)
        return package

    def take(self, package: Path) -> None:
        """Add a package file that was made elsewhere."""
        described = _control(package)
        fields = dict(line.split(": ", 1) for line in described.splitlines())
        file = Path(shutil.copy(package, self._pool / f"{fields['Package']}.deb"))
        self._enter(fields["Package"], fields["Architecture"], described, file)

    def _enter(self, name: str, architecture: str, described: str, package: Path) -> None:
        self._entries[name, architecture] = _entry(described, package, ".")
        self._publish()

    def _publish(self) -> None:
        (self._pool / "Packages").write_text("\n\n".join([*self._entries.values(), ""]))


def mirror_of_releases(place: Path, releases: Mapping[str, Iterable[Path]]) -> None:
    """Make a mirror in ``place`` that has releases by their names, each of some package files; nobody signs them."""
    for release, packages in releases.items():
        entries = []
        for package in packages:
            (place / "pool").mkdir(parents=True, exist_ok=True)
            shutil.copy(package, place / "pool")
            entries.append(_entry(_control(package), package, "pool"))
        index = "\n\n".join([*entries, ""]).encode()
        directory = place / "dists" / release
        (directory / "main/binary-amd64").mkdir(parents=True)
        (directory / "main/binary-amd64/Packages").write_bytes(index)
        listed = f" {hashlib.sha256(index).hexdigest()} {len(index)} main/binary-amd64/Packages"
        head = [f"Codename: {release}", "Components: main", "Architectures: amd64"]
        lines = [*head, "Date: Thu, 01 Jan 2026 00:00:00 UTC", "SHA256:", listed, ""]
        (directory / "Release").write_text("\n".join(lines))


def trust_everybody(configuration: Path) -> None:
    """Have apt take what nobody has signed."""
    with configuration.open("a") as stream:
        stream.write('Acquire::AllowInsecureRepositories "true";\nAPT::Get::AllowUnauthenticated "true";\n')


def kernel_package(place: Path, *, boot: bool, release: str = KERNEL_RELEASE, left_out: str = "") -> Path:
    """A package with a kernel: all of it where Debian 12 has it, or where its newest kernels have it.

    ``place`` is where it goes and is put together, and holds no other.
    """
    tree = place / "tree"
    modules = tree / ("" if boot else "usr") / "lib/modules" / release
    image = tree / f"boot/vmlinuz-{release}" if boot else modules / "vmlinuz"
    config = tree / f"boot/config-{release}" if boot else modules / "config"
    for name, said in _MODULES.items():
        if left_out and left_out in name:
            continue
        file = modules / "kernel" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        content = b"\x7fELF\0" + said + b"\0" + name.encode()
        file.write_bytes(lzma.compress(content) if file.suffix == ".xz" else content)
    (modules / "modules.builtin").write_text("kernel/drivers/virtio/virtio_pci.ko\n")
    for file, text in ((image, "an image"), (config, "CONFIG_SMP=y\n")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tree / "DEBIAN").mkdir()
    version = release.partition("+")[0].partition("-")[0]
    (tree / "DEBIAN/control").write_text(
        f"Package: linux-image-{release}\nVersion: 1:{version}-1~bpo13+1\nArchitecture: amd64\n"
        "Maintainer: Nobody <nobody@example.org>\nDescription: a test\n"
    )
    file = place / "kernel.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", str(tree), str(file)], check=True)
    return file


def _control(package: Path) -> str:
    """What a package file says of itself."""
    done = subprocess.run(["dpkg-deb", "--field", package], capture_output=True, check=True, text=True)
    return done.stdout.strip()


def _entry(described: str, package: Path, directory: str) -> str:
    """What a mirror's list has of a package file."""
    data = package.read_bytes()
    where = [f"Filename: {directory}/{package.name}", f"Size: {len(data)}"]
    return "\n".join([described, *where, f"SHA256: {hashlib.sha256(data).hexdigest()}"])

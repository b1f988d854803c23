# SPDX-License-Identifier: GPL-2.0-only
"""Mirrors of Debian packages on this machine, for the real apt."""

import hashlib
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path


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
        self._entries[name, architecture] = _entry(described, package, ".")
        self._publish()
        return package

    def _publish(self) -> None:
        (self._pool / "Packages").write_text("\n\n".join([*self._entries.values(), ""]))


def mirror_of_releases(place: Path, releases: Mapping[str, Iterable[Path]]) -> None:
    """Make a mirror in ``place`` that has releases by their names, each of some package files; nobody signs them."""
    for release, packages in releases.items():
        entries = []
        for package in packages:
            (place / "pool").mkdir(parents=True, exist_ok=True)
            shutil.copy(package, place / "pool")
            control = subprocess.run(
                ["dpkg-deb", "--field", package], capture_output=True, check=True, text=True
            ).stdout
            entries.append(_entry(control.strip(), package, "pool"))
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


def _entry(described: str, package: Path, directory: str) -> str:
    """What a mirror's list has of a package file."""
    data = package.read_bytes()
    where = [f"Filename: {directory}/{package.name}", f"Size: {len(data)}"]
    return "\n".join([described, *where, f"SHA256: {hashlib.sha256(data).hexdigest()}"])

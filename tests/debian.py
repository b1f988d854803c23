# SPDX-License-Identifier: GPL-2.0-only
"""A mirror of Debian packages on this machine, for the real apt."""

import hashlib
import subprocess
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
        data = package.read_bytes()
        hash_line = f"SHA256: {hashlib.sha256(data).hexdigest()}"
        entry = [described, f"Filename: ./{package.name}", f"Size: {len(data)}", hash_line]
        self._entries[name, architecture] = "\n".join(entry)
        self._publish()
        return package

    def _publish(self) -> None:
        (self._pool / "Packages").write_text("\n\n".join([*self._entries.values(), ""]))

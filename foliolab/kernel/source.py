# SPDX-License-Identifier: GPL-2.0-only
"""Getting a pristine 6.12 source tree: Debian's package, or the user's tree or tarball."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import SourceError
from foliolab.files import digest, full_disk_named, locked, write_atomic
from foliolab.paths import cache_directory
from foliolab.process import dying_with_parent, run, tool
from foliolab.progress import Reporter

PACKAGE = "linux-source-6.12"


@dataclass(frozen=True)
class Source:
    """A pristine kernel tree that nobody writes to."""

    tree: Path
    version: str
    """As the top Makefile says it, for example "6.12.117"."""
    identity: str
    """Hash of what the tree was made from; same identity, same content."""

    @property
    def home(self) -> Path:
        """The cache directory for everything derived from this source."""
        return self.tree.parent


def obtain(given: Path | None, report: Reporter, *, newest: bool = False) -> Source:
    """The source tree to build from.

    ``given`` is a tree or a tarball; without it Debian's package is used. What was fetched once stays the
    base until ``newest`` asks apt again, so that an upgrade of the machine does not change measurements.
    """
    if given is None:
        return _from_debian(report, newest)
    if given.is_dir():
        return _from_tree(given.resolve(), report)
    if given.is_file():
        return _from_tarball(given.resolve(), report)
    raise SourceError(f"There is no kernel tree or tarball at {given}.")


def version_of(tree: Path) -> str:
    """The version in a kernel tree's top Makefile; SourceError if it is none, or not a 6.12."""
    try:
        head = (tree / "Makefile").read_text()[:500]
    except OSError:
        raise SourceError(f"{tree} is not a kernel tree: it has no Makefile.") from None
    fields = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", head, re.MULTILINE))
    if len(fields) != 3:
        raise SourceError(f"{tree} is not a kernel tree: its Makefile names no version.")
    version = "{VERSION}.{PATCHLEVEL}.{SUBLEVEL}".format(**fields)
    if not version.startswith("6.12."):
        raise SourceError(f"{tree} is Linux {version}; the hooks are made for 6.12.")
    return version


def _sources() -> Path:
    return cache_directory() / "sources"


def _from_debian(report: Reporter, newest: bool) -> Source:
    note = _sources() / "debian.json"
    if note.exists() and not newest:
        home = Path(json.loads(note.read_text())["home"])
        if (home / "pristine").is_dir():
            return Source(home / "pristine", version_of(home / "pristine"), home.name)
    with full_disk_named(_sources()):
        _sources().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_sources()) as scratch, report.task(f"Fetching Debian's {PACKAGE}"):
            tarball = _fetch_package(Path(scratch))
            source = _from_tarball(tarball, report)
    write_atomic(note, json.dumps({"home": str(source.home)}))
    return source


def _fetch_package(directory: Path) -> Path:
    fetched = _apt_download(directory)
    if fetched.returncode and os.geteuid() == 0:
        # Old point releases vanish from the mirrors, and with them what an old list names.
        subprocess.run([tool("apt-get", "apt"), "update"], capture_output=True, check=False)
        fetched = _apt_download(directory)
    packages = list(directory.glob("*.deb"))
    if fetched.returncode or not packages:
        words = [line for line in fetched.stderr.splitlines() if line.startswith("E:")]
        raise SourceError(
            f"apt cannot fetch {PACKAGE} ({words[-1][3:] if words else 'no package arrived'}); "
            "'apt-get update' may help, or give a tree or tarball with --source."
        )
    run([tool("dpkg-deb", "dpkg"), "--extract", str(packages[0]), str(directory / "package")], SourceError)
    packages[0].unlink()
    tarballs = list((directory / "package/usr/src").glob("linux-source-*.tar.*"))
    if not tarballs:
        raise SourceError(f"The package {PACKAGE} holds no source tarball.")
    return tarballs[0]


def _apt_download(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        dying_with_parent([tool("apt-get", "apt"), "download", PACKAGE]),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def _from_tarball(tarball: Path, report: Reporter) -> Source:
    with tarball.open("rb") as stream:
        identity = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    home = _sources() / identity
    pristine = home / "pristine"
    with full_disk_named(home), locked(_sources() / f"{identity}.lock"):
        if not pristine.is_dir():
            home.mkdir(parents=True, exist_ok=True)
            with report.task(f"Unpacking {tarball.name}"), _scratch(home) as scratch:
                run(
                    [tool("tar", "tar"), "--extract", "--file", str(tarball), "--directory", str(scratch)],
                    SourceError,
                )
                trees = [entry for entry in scratch.iterdir() if entry.is_dir()]
                if len(trees) != 1:
                    raise SourceError(f"{tarball} does not hold exactly one directory, as kernel tarballs do.")
                version_of(trees[0])
                trees[0].rename(pristine)
    return Source(pristine, version_of(pristine), identity)


@contextmanager
def _scratch(home: Path) -> Iterator[Path]:
    """A directory for half-made things; what a killed run left there is swept first."""
    scratch = home / "unpacking"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _from_tree(tree: Path, report: Reporter) -> Source:
    """Mirror the user's tree, so that it is neither written to nor changed under a running build."""
    version_of(tree)
    home = _sources() / f"tree-{digest([str(tree)])}"
    pristine = home / "pristine"
    with full_disk_named(home), locked(home / "lock"), report.task(f"Mirroring {tree}"):
        pristine.mkdir(parents=True, exist_ok=True)
        run(
            # Not the user's time stamps: a file that went back to an older one must be newer than its object.
            [tool("rsync", "rsync"), "-rlp", "--checksum", "--delete", "--exclude=/.git", "--exclude=*.o",
             "--exclude=/.config", f"{tree}/", f"{pristine}/"],
            SourceError,
        )  # fmt: skip
        # Names, sizes and times, as rsync itself compares: reading 1.4 GB would take longer than it is worth.
        listing = [
            f"{path.relative_to(pristine)} {path.lstat().st_size} {path.lstat().st_mtime_ns}"
            for path in sorted(pristine.rglob("*"))
            if not path.is_dir()
        ]
    return Source(pristine, version_of(pristine), digest(listing))

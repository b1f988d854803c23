# SPDX-License-Identifier: GPL-2.0-only
"""Lucene as it is published, the driver around it, and the root directory that it runs in, which has git as well."""

import shutil
import zipfile
from pathlib import Path

from foliolab import process
from foliolab.arch import Architecture
from foliolab.disks.userland import Selection, Userland
from foliolab.errors import BuildError, LabError
from foliolab.files import GUEST, cache_directory, digest, digest_files, made_once, sha256
from foliolab.progress import working

_SOURCES = GUEST / "stores" / "lucene"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_JAVA = ("-nowarn", "-source", "17", "-target", "17")
"""What Debian 12 can compile to, which has no Java that reads Lucene's classes; the guest has a newer one."""

_LUCENE = ("org.apache.lucene:lucene-core:10.4.0", "8f894d211a8123938ccb9ff6827d136747e0eb6b1782ada6ac9086aa911b52e2")
# Unlike javac, this compiler runs on an older Java than the classes that it is given are for.
_COMPILER = ("org.eclipse.jdt:ecj:3.40.0", "05cc22a24e7982970f63a405fc6c820bc80b806f27f3c5a6236fc475f8f7152b")
"""Maven's coordinates of each file, and its SHA-256."""

_PACKAGES = ("coreutils", "dash", "git", "make", "openjdk-21-jre-headless")
_SETTLE = (("program-workload", "--root", "/data", "--workload", "prepare"),)
_SUITE = "trixie"
"""The first release of Debian with a Java for Lucene 10."""


def root(arch: Architecture) -> Userland:
    """The root directory for Lucene and for git, whose programs are in /usr/bin; Lucene's driver is /src/lucene.

    MissingTool without mvn or a Java to compile with.
    """
    return Userland.selected(arch, Selection(_PACKAGES, (programs(),), _SETTLE, _SUITE))


def programs() -> Path:
    """A directory of the cache with all that the driver consists of, whatever the architecture."""
    sources = sorted(path for path in _SOURCES.iterdir() if path.is_file())

    def make(partial: Path) -> None:
        with working(f"fetching {_LUCENE[0]} and compiling a driver for it"):
            library, compiler = (_fetch(*jar, partial) for jar in (_LUCENE, _COMPILER))
            _compile(compiler, library, partial)
            compiler.unlink()
        for name in ("lucene", "prepare.mk"):
            shutil.copy(_SOURCES / name, partial)

    key = digest([_LUCENE[1], _COMPILER[1], *_JAVA, digest_files(sources, _SOURCES)])
    return made_once(cache_directory() / "stores" / "lucene", key, make)


def _fetch(coordinates: str, expected: str, directory: Path) -> Path:
    """Have Maven fetch a file, or take it from what it has fetched for others."""
    output = [f"-DoutputDirectory={directory.resolve()}", "-Dmdep.stripVersion=true"]
    argv = [process.tool("mvn"), "--batch-mode", "--quiet", _COPY, f"-Dartifact={coordinates}", *output]
    process.run(argv, LabError, cwd=directory)
    _, name, version = coordinates.split(":")
    found = directory / f"{name}.jar"
    if sha256(found) != expected:
        raise BuildError(f"{found.name} of version {version} is not the file that is known.")
    return found


def _compile(compiler: Path, library: Path, directory: Path) -> None:
    """Put driver.jar into a directory, the same from each compilation."""
    classes = directory / "classes"
    argv = [process.tool("java"), "-jar", str(compiler), *_JAVA, "-classpath", str(library), "-d", str(classes)]
    process.run([*argv, str(_SOURCES / "Driver.java")], BuildError)
    with zipfile.ZipFile(directory / "driver.jar", "w") as jar:
        for path in sorted(classes.iterdir()):
            jar.writestr(zipfile.ZipInfo(path.name), path.read_bytes())
    shutil.rmtree(classes)

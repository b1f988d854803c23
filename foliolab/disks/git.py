# SPDX-License-Identifier: GPL-2.0-only
"""A repository of git's with a part of the kernel's source in one pack, and the driver that reads it."""

from pathlib import Path

from foliolab import process
from foliolab.arch import Architecture
from foliolab.errors import BuildError, LabError
from foliolab.files import GUEST, cache_directory, digest, digest_files, made_once
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.name import BASE_VERSION
from foliolab.progress import working

_SOURCES = [GUEST / "stores" / name for name in ("driver.h", "git.c")]
_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-static", "-std=gnu11")

# 600 MB in 51,000 files, which make a pack of 140 MB. The drivers for graphics would double that with
# tables of registers.
_PARTS = (
    *("arch", "block", "crypto", "fs", "include", "kernel", "lib", "mm", "net", "security", "sound", "tools"),
    *("drivers/media", "drivers/net", "drivers/scsi", "drivers/staging"),
)

_IDENTITY = {
    f"{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("DATE", "1700000000 +0000"), ("EMAIL", "foliolab"), ("NAME", "foliolab"))
}
"""What decides the names of commits."""

_LAYOUT = "1"
"""To be raised when the same source is to make another repository."""


def repository() -> Path:
    """What a disk with the repository holds, in a directory of the cache that is named by a hash of its origin.

    The repository is in data/repository, the number of its blobs in records, and their names in oids, each with a
    zero byte behind it. MissingTool without git.
    """
    version = process.git(LabError, "--version")
    source = from_debian(BASE_VERSION)

    def make(partial: Path) -> None:
        with working("making a git repository of a part of the kernel's source, in minutes"):
            names = _filled(partial / "data/repository", source.tree)
            (partial / "oids").write_text("".join(f"{name}\0" for name in names))
            (partial / "records").write_text(f"{len(names)}\n")

    return made_once(cache_directory() / "stores/git", digest([_LAYOUT, source.identity, version, *_PARTS]), make)


def drivers(arch: Architecture) -> dict[str, Path]:
    """The driver for ``arch``, which knows the blobs of ``repository``: name -> path. Cached by all that goes in."""
    compiler, version = process.compiler(arch)
    names = repository()

    def make(partial: Path) -> None:
        with working("compiling a driver for git"):
            argv = [compiler, *_FLAGS, "-o", str(partial.resolve() / "git"), str(_SOURCES[1])]
            process.run(argv, BuildError, cwd=names)

    key = digest([arch.name, version, *_FLAGS, digest_files(_SOURCES, GUEST), (names / "oids").read_bytes()])
    return {"git": made_once(cache_directory() / "stores/git-driver", key, make) / "git"}


def _filled(place: Path, tree: Path) -> list[str]:
    """Make a repository with all of _PARTS in one commit and one pack; its blobs' names in the order of the files'."""

    def run(*words: str, cwd: Path | None = None) -> bytes:
        return process.git(LabError, f"--git-dir={place.resolve()}", *words, place=cwd, settings=_IDENTITY)

    place.parent.mkdir(parents=True)
    run("init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(place))
    # Objects that are packed at once need not be compressed before, nor reach the disk.
    loose = ["-c", "core.looseCompression=0", "-c", "core.fsync=none"]
    run(*loose, "--work-tree", str(tree), "add", "--force", "--", *_PARTS, cwd=tree)
    names = run("write-tree").decode().strip()
    commit = run("commit-tree", "-m", "A part of Linux", names).decode().strip()
    run("update-ref", "HEAD", commit)
    (place / "index").unlink()
    # With several threads, deltas would be others each time.
    settings = ["-c", "core.fsync=none", "-c", "pack.threads=1", "-c", "repack.writeBitmaps=false"]
    run(*settings, "repack", "--quiet", "-a", "-d", "-f")
    lines = run("ls-tree", "-r", "-z", "HEAD").decode(errors="surrogateescape").split("\0")[:-1]
    return list(dict.fromkeys(line.split("\t")[0].split()[2] for line in lines))

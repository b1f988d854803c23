# SPDX-License-Identifier: GPL-2.0-only
"""Guest programs, the initramfs that carries them, and the memory that it takes to boot."""

import os
import re
import stat
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from foliolab import process
from foliolab.arch import Architecture
from foliolab.errors import BuildError, LabError, UsageError
from foliolab.files import GUEST, cache_directory, digest, digest_files, made_once, write_atomic
from foliolab.progress import working

_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-std=gnu11")
INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)
_WORKING_BYTES = 16 << 20
"""For the kernel's tables and drivers, and for its first processes."""


def program_sources() -> dict[str, Path]:
    """The C file of each program of guest/: name -> path. They lie in directories, and their headers above those."""
    # Those of guest/stores are drivers, each of which is compiled with its engine.
    return {path.stem: path for path in sorted(GUEST.glob("*/*.c")) if path.parent.name != "stores"}


def with_headers(source: Path) -> set[Path]:
    """A program's source with the headers of guest/ that it includes, itself or through others."""
    found: set[Path] = set()
    new = {source}
    while new:
        found |= new
        names = {name for file in new for name in INCLUDE.findall(file.read_text())}
        new = {GUEST / name for name in names} - found
    return found


def guest_programs(arch: Architecture) -> dict[str, Path]:
    """Every program of guest/, compiled for ``arch``: name -> path. Cached by all that goes in."""
    compiler, version = process.compiler(arch)
    sources = program_sources()
    content = digest_files([*sources.values(), *GUEST.glob("*.h")])

    def make(partial: Path) -> None:
        with working("compiling guest programs"):
            for name, source in sources.items():
                argv = [compiler, *_FLAGS, f"-I{GUEST}", "-o", str(partial / name), str(source)]
                process.run(argv, BuildError)

    key = digest([arch.name, version, *_FLAGS, content])
    published = made_once(cache_directory() / "guest", key, make)
    return {name: published / name for name in sources}


@dataclass(frozen=True)
class Entry:
    path: str
    """Without a leading slash."""
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def newc(entries: Iterable[Entry]) -> bytes:
    """A cpio archive in the "newc" format that the kernel unpacks; times, owners and links are zero."""
    archive = bytearray()
    for number, entry in (*enumerate(entries, start=1), (0, Entry("TRAILER!!!", 0))):
        name = entry.path.encode() + b"\0"
        links = 2 if stat.S_ISDIR(entry.mode) else 1
        fields = (number, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, *entry.device, len(name), 0)
        archive.extend(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
        archive.extend(bytes(-len(archive) % 4))
        archive.extend(entry.content)
        archive.extend(bytes(-len(archive) % 4))
    return bytes(archive)


def _file_entry(guest_path: str, host_path: Path) -> Entry:
    try:
        content = host_path.read_bytes()
    except OSError as error:
        raise LabError(f"{host_path} cannot be put into the guest: {error.strerror}.") from error
    mode = 0o755 if os.access(host_path, os.X_OK) else 0o644
    return Entry(guest_path.lstrip("/"), stat.S_IFREG | mode, content)


def initramfs(
    programs: Mapping[str, Path], extra: Mapping[str, Path] | None = None, modules: Iterable[Path] = ()
) -> Path:
    """The archive that holds init, all other ``programs`` in /bin, and ``extra`` files: guest path -> host path.

    init loads the ``modules`` of the kernel in the order of their names.
    """
    files = {"init" if name == "init" else f"bin/{name}": path for name, path in programs.items()}
    files |= {f"modules/{path.name}": path for path in modules}
    files |= {name.lstrip("/"): path for name, path in (extra or {}).items()}
    entries = [_file_entry(guest_path, path) for guest_path, path in sorted(files.items())]
    directories = {"bin", "dev", "proc", "sys", "tmp"}
    for name in files:
        directories |= {str(parent) for parent in PurePosixPath(name).parents if parent.name}
    console = Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive = newc([*(Entry(name, stat.S_IFDIR | 0o755) for name in sorted(directories)), console, *entries])
    published = cache_directory() / "images" / f"{digest([archive])}.cpio"
    if not published.exists():
        write_atomic(published, archive)
    return published


def require_memory(arch: Architecture, memory_mib: int, kernel: Path, initramfs: Path) -> None:
    """Raise UsageError for a guest that can hardly boot: it would reset itself or hang, and not say why.

    An estimate, accurate to a few MiB. Kernels with base pages of 64 KiB need more than it says.
    """
    at, form = arch.image_bytes
    with kernel.open("rb") as stream:
        (image,) = struct.unpack_from(form, stream.read(1024), at)
    # The archive is unpacked into a tmpfs, whose limit is half of the memory that the kernel and the archive leave.
    least = -(-(int(image) + 3 * initramfs.stat().st_size + _WORKING_BYTES) >> 20)
    if memory_mib < least:
        raise UsageError(
            f"A guest with {memory_mib}M of memory is too small for its kernel and its programs; give it {least}M."
        )

# SPDX-License-Identifier: GPL-2.0-only
"""The model of the page cache, compiled when it is first wanted."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from foliolab import process
from foliolab.errors import BuildError
from foliolab.files import DEVICE, GUEST, KERNEL, MODEL, REPOSITORY, cache_directory, digest, digest_files, made_once
from foliolab.progress import working

_HEADERS = KERNEL / "files/include/linux"
_MM = KERNEL / "files/mm"
WINDOW = _MM / "mmap_readahead_window.c"
WINDOW_HEADER = WINDOW.with_suffix(".h")
POLICIES = (WINDOW, WINDOW_HEADER, *(_HEADERS / f"mmap_readahead_{part}.h" for part in ("hits", "rule")))
"""The kernel's own files, which the model compiles."""
_SOURCES = ("model.c", "memory.c", "clock.c", "openers.c", "play.c", "policies/*.c")
_FLAGS = ("-O3", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-fPIC", "-shared")
INCLUDES = (f"-I{MODEL / 'shim'}", f"-I{KERNEL / 'files/include'}", f"-I{_MM}")
"""Where the kernel's headers that the policies include are stood in for, and where our own are."""
_OTHER_WINDOW = "-Wno-unused"
"""It may leave functions and variables behind that only the kernel's own one uses."""
_READS = MODEL / "reads"
"""A library of its own: it does not change what the model answers, and includes headers that the shim stands in for."""


def sources() -> list[Path]:
    """Everything that is compiled into the library."""
    elsewhere = [*(GUEST / f"{name}.h" for name in ("cases", "patterns", "random")), DEVICE / "device_time.h"]
    headers = sorted(path for path in MODEL.rglob("*.h") if path.parent != _READS)
    return [*_compiled(), WINDOW, *headers, *elsewhere, *POLICIES[1:]]


def _compiled() -> list[Path]:
    return [path for name in _SOURCES for path in sorted(MODEL.glob(name))]


def policy_hash() -> str:
    """Of these files: what the model's samples have for a kernel."""
    return digest_files(POLICIES, REPOSITORY)


@cache
def identity() -> str:
    """A hash of all that decides what the model answers, as it was when this was first asked for."""
    return _hash_of(sources())


def _hash_of(files: Iterable[Path]) -> str:
    version = process.run([process.tool("cc"), "--version"], BuildError)
    return digest([version, *_FLAGS, digest_files(files, REPOSITORY)])


def compiled(window: str = "") -> Path:
    """The shared library; compiled unless the cache has it.

    ``window`` is C that takes the place of the kernel's own adaptive window, if there is any; so it is in all functions
    here that have it.
    """

    def make(partial: Path) -> None:
        flags, policy = [*_FLAGS, *INCLUDES], WINDOW
        if window:
            policy = partial / WINDOW.name
            policy.write_text(window)
            flags.append(_OTHER_WINDOW)
        with working("compiling the model"):
            files = map(str, (*_compiled(), policy))
            process.run([process.tool("cc"), *flags, "-o", str(partial / "model.so"), *files], BuildError)
        if _hash_of(sources()) != identity():
            raise BuildError("The model's sources changed while they were compiled; start again.")

    name = digest([identity(), window]) if window else identity()
    return made_once(cache_directory() / "model", name, make) / "model.so"


def compiled_reads() -> Path:
    """The shared library that really reads what the model reads; compiled unless the cache has it."""
    written = sorted(_READS.glob("*.c"))

    def make(partial: Path) -> None:
        with working("compiling the reads of the model"):
            argv = [process.tool("cc"), *_FLAGS, "-o", str(partial / "reads.so"), *map(str, written)]
            process.run(argv, BuildError)

    name = _hash_of([*written, *_READS.glob("*.h"), MODEL / "model.h", GUEST / "patterns.h", GUEST / "random.h"])
    return made_once(cache_directory() / "model", name, make) / "reads.so"

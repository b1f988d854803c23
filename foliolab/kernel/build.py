# SPDX-License-Identifier: GPL-2.0-only
"""Building kernels with tuxmake, and finding those that were built before."""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from foliolab.arch import Architecture, architecture, size_name
from foliolab.errors import BuildError, ConfigError, DiskFull
from foliolab.files import digest, full_disk_named, locked, write_atomic
from foliolab.kernel import config
from foliolab.kernel.series import changed_files, read_series
from foliolab.kernel.source import Source, obtain
from foliolab.kernel.tree import working_tree
from foliolab.paths import cache_directory
from foliolab.process import process_group, run, tool
from foliolab.progress import Reporter

_POLL_SECONDS = 1.0

_CACHED = ("kernels", "build", "sources", "guest", "images", "disks", "packages", "userlands", "stores", "model")
"""All directories of the cache but ``kvm``, which says what the machine can do, and ``scratch``, which has owners."""

_NOT_BUILT = ("Documentation/", "MAINTAINERS", "tools/testing/")
"""Changes there make no other kernel."""


class _MakeFailed(BuildError):
    """make ended by itself: what it made until then is whole."""


@dataclass(frozen=True)
class KernelRequest:
    """What to build."""

    arch: Architecture
    flavour: str
    """patched, or unpatched for the control that has none of our code."""
    profile: str = "lab"
    """One of config.PROFILES."""
    extras: tuple[str, ...] = ()
    """Optional fragments, by name."""
    source: Path | None = None
    """A tree or tarball; None for Debian's package."""
    newest: bool = False
    """Ask apt whether there is a newer Debian package."""
    page_size: int = 0
    """Bytes; 0 becomes the architecture's default."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "page_size", self.arch.page_size(self.page_size or None))


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel in the cache."""

    hash: str
    """Over everything that went in: source, our changes, options, compiler."""
    image: Path
    flavour: str
    profile: str
    arch: Architecture
    release: str
    """As ``uname -r`` prints it."""
    page_size: int
    """Bytes."""

    @property
    def config(self) -> Path:
        return self.image.parent / "config"


@dataclass(frozen=True)
class _Inputs:
    """Everything that determines a kernel."""

    request: KernelRequest
    source: Source
    changed: dict[str, bytes]
    options: str
    compiler: str

    @property
    def hash(self) -> str:
        parts: list[bytes | str] = [self.source.identity, self.request.arch.name, self.options, self.compiler]
        for file, content in self.changed.items():
            if not file.startswith(_NOT_BUILT):
                parts += [file, content]
        return digest(parts)

    @property
    def name(self) -> str:
        extras = "".join(f" with {extra}" for extra in self.request.extras)
        return f"{self._machine} {self.request.profile} {self.request.flavour}{extras}"

    @property
    def directory(self) -> Path:
        """Where it is built. What differs in extras alone shares it, each an incremental build after the other."""
        name = f"{self.source.home.name}-{self._machine}-{self.request.profile}-{self.request.flavour}"
        return cache_directory() / "build" / name

    @property
    def _machine(self) -> str:
        """Architecture, and page size where there is a choice."""
        arch = self.request.arch
        return f"{arch.name}-{size_name(self.request.page_size)}" if len(arch.page_sizes) > 1 else arch.name


def build(request: KernelRequest, report: Reporter) -> BuiltKernel:
    """The kernel asked for: from the cache, or built, incrementally where one of its name was built before.

    Raises SourceError, HookError, ConfigError or BuildError.
    """
    inputs = _gather(request, report)
    if found := _load(_kernels() / inputs.hash):
        return found
    with _build_lock(report):
        if found := _load(_kernels() / inputs.hash):
            return found
        with full_disk_named(inputs.directory), _unfinished_swept(inputs.directory):
            tree = _configure(inputs, report)
            title = f"Building Linux {inputs.source.version}, {inputs.name}"
            _make(inputs, tree, ["default", "kernel"], title, report)
            return _publish(inputs)


def configure(request: KernelRequest, report: Reporter) -> str:
    """The final .config of a kernel, checked against the fragments, without building it."""
    inputs = _gather(request, report)
    if found := _load(_kernels() / inputs.hash):
        return found.config.read_text()
    with _build_lock(report), full_disk_named(inputs.directory), _unfinished_swept(inputs.directory):
        _configure(inputs, report)
        return (inputs.directory / ".config").read_text()


def built_kernels() -> list[BuiltKernel]:
    """The kernels in the cache, newest first."""
    places = sorted(_kernels().glob("*"), key=lambda place: place.stat().st_mtime, reverse=True)
    return [kernel for place in places if (kernel := _load(place))]


def clean(report: Reporter) -> None:
    """Empty the cache of all that is made again when it is wanted."""
    with _build_lock(report):
        for name in _CACHED:
            shutil.rmtree(cache_directory() / name, ignore_errors=True)


def _build_lock(report: Reporter) -> AbstractContextManager[int]:
    """One build at a time: two would only fight over the cores, and they share source trees."""
    return locked(cache_directory() / "build.lock", lambda: report.say("Another build is running; waiting for it."))


def _kernels() -> Path:
    return cache_directory() / "kernels"


def _gather(request: KernelRequest, report: Reporter) -> _Inputs:
    source = obtain(request.source, report, newest=request.newest)
    changed = changed_files(source, read_series()) if request.flavour == "patched" else {}
    compiler = run([tool(request.arch.compiler, request.arch.compiler_package), "--version"], BuildError)
    return _Inputs(
        request=request,
        source=source,
        changed=changed,
        options=config.merge(request.arch, request.page_size, request.profile, request.flavour, request.extras),
        compiler=compiler.decode().splitlines()[0],
    )


@contextmanager
def _unfinished_swept(directory: Path) -> Iterator[None]:
    """Before a build, remove what one that was killed may have left half-made.

    make takes any object that is newer than its source for whole, and a kill between the compiler and
    objtool leaves one that is not.
    """
    stamp = directory / "unfinished"
    directory.mkdir(parents=True, exist_ok=True)
    if stamp.exists():
        since = stamp.stat().st_mtime
        for place, _, files in os.walk(directory):
            for path in (Path(place, name) for name in files if name.endswith((".o", ".a")) or "vmlinux" in name):
                if path.lstat().st_mtime >= since:
                    path.unlink()
    if not stamp.exists():
        stamp.touch()
    try:
        yield
    except (_MakeFailed, ConfigError):
        stamp.unlink()
        raise
    stamp.unlink()


def _configure(inputs: _Inputs, report: Reporter) -> Path:
    """Configure, check against the fragments, and return the source tree."""
    tree = working_tree(inputs.source, inputs.request.flavour, inputs.changed)
    # tuxmake keeps a .config that exists, so a changed fragment would go unseen.
    (inputs.directory / ".config").unlink(missing_ok=True)
    _make(inputs, tree, ["config"], f"Configuring {inputs.name}", report)
    config.check(inputs.options, (inputs.directory / ".config").read_text())
    return tree


def _make(inputs: _Inputs, tree: Path, targets: list[str], title: str, report: Reporter) -> None:
    directory = inputs.directory
    options = directory / "options.config"
    write_atomic(options, inputs.options)
    log = directory / f"{targets[0]}.log"
    command = [
        sys.executable, "-m", "tuxmake", "--directory", str(tree), "--build-dir", str(directory),
        "--output-dir", str(directory / "artifacts"), "--target-arch", inputs.request.arch.name,
        "--kernel-image", inputs.request.arch.image,
        # allnoconfig takes the options it is given and leaves everything else off.
        "--kconfig", "allnoconfig", "--environment", f"KCONFIG_ALLCONFIG={options}", *targets,
    ]  # fmt: skip
    with report.task(title) as task, log.open("wb") as output, process_group(command, output) as child:
        while child.poll() is None:
            task.note(f"{_objects(directory)} objects")
            time.sleep(_POLL_SECONDS)
    if child.returncode:
        words = log.read_text(errors="replace")
        if "No space left on device" in words:
            raise DiskFull(f"No space left on the disk that holds {directory}.")
        failure = _MakeFailed if child.returncode > 0 else BuildError  # less if a signal killed it
        raise failure(f"{title} failed: {_reason(words)} (all of it: {log})")


def _objects(directory: Path) -> int:
    """How many object files there are; the only sign of life that a silent make gives."""
    return sum(name.endswith(".o") for _, _, files in os.walk(directory) for name in files)


def _reason(log: str) -> str:
    """The first line of a build log that says what is wrong."""
    lines = log.splitlines()
    for pattern in (r"\berror:", r"\*\*\* ", r"^E: "):
        for text in lines:
            if re.search(pattern, text):
                return text.strip()
    return lines[-1].strip() if lines else "tuxmake said nothing"


def _publish(inputs: _Inputs) -> BuiltKernel:
    directory = inputs.directory
    place = _kernels() / inputs.hash
    scratch = _kernels() / f".{inputs.hash}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    artifacts = directory / "artifacts"
    shutil.copyfile(artifacts / inputs.request.arch.image, scratch / inputs.request.arch.image)
    shutil.copyfile(directory / "System.map", scratch / "System.map")
    shutil.copyfile(directory / ".config", scratch / "config")
    for name in ("metadata.json", "reproducer.sh"):
        if (artifacts / name).exists():
            shutil.copyfile(artifacts / name, scratch / name)
    description = {
        "release": (directory / "include/config/kernel.release").read_text().strip(),
        "arch": inputs.request.arch.name,
        "page_size": inputs.request.page_size,
        "flavour": inputs.request.flavour,
        "profile": inputs.request.profile,
        "source": inputs.source.identity,
        "version": inputs.source.version,
        "compiler": inputs.compiler,
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    for path in scratch.iterdir():
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
    write_atomic(scratch / "kernel.json", json.dumps(description, indent=1))
    shutil.rmtree(place, ignore_errors=True)  # there only if it was damaged
    scratch.rename(place)
    kernel = _load(place)
    assert kernel
    return kernel


def _load(place: Path) -> BuiltKernel | None:
    try:
        facts = json.loads((place / "kernel.json").read_text())
    except (OSError, ValueError):
        return None
    arch = architecture(facts["arch"])
    return BuiltKernel(
        hash=place.name,
        image=place / arch.image,
        flavour=facts["flavour"],
        profile=facts["profile"],
        arch=arch,
        release=facts["release"],
        page_size=facts.get("page_size", arch.page_sizes[0]),  # kernels of before have the default
    )

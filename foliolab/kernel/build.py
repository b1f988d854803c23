# SPDX-License-Identifier: GPL-2.0-only
"""Building kernels with tuxmake, where the cache has none that is the same."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from foliolab.arch import Architecture, size_name
from foliolab.errors import UsageError
from foliolab.files import cache_directory, digest, full_disk_named, locked, made_once, write_atomic
from foliolab.kernel import config, debian_kernel, module, timed_disk
from foliolab.kernel.built import BuiltKernel, kernels_directory, load_kernel
from foliolab.kernel.code import is_built
from foliolab.kernel.held import held
from foliolab.kernel.make import build_lock, hold_build_lock, run_make, unfinished_swept
from foliolab.kernel.name import KernelName, parse_name
from foliolab.kernel.series import applied, parts_of
from foliolab.kernel.source import Source
from foliolab.kernel.tree import working_tree
from foliolab.process import compiler
from foliolab.progress import say, working

_CACHED = (
    *("kernels", "build", "sources", "headers", "modules", "guest", "images", "images-of-disks", "stand-ins"),
    *("disks", "packages", "userlands", "stores", "model", "matrix", "outcomes", "kselftests", "fetched", "ltp"),
)
"""All directories of the cache but ``kvm``, which says what the machine can do, and ``temporary``, which has owners."""

_APART = ("ftrace", "kcsan", "preempt-rt")
"""Extras with which most objects are others."""

_OUR_FILE = "mm/mmap_readahead_adaptive.c"
"""By which a tree with our code is known."""


@dataclass(frozen=True)
class KernelRequest:
    arch: Architecture
    kernel: str
    """Its name, as foliolab.kernel.name has them."""
    profile: str = "lab"
    extras: tuple[str, ...] = ()
    """Optional fragments, by name; becomes sorted, each once."""
    newest: bool = False
    page_size: int = 0
    """Bytes; 0 becomes the architecture's default."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "extras", tuple(sorted({*self.extras})))
        object.__setattr__(self, "page_size", self.arch.page_size(self.page_size or None))


@dataclass(frozen=True)
class _Inputs:
    """Everything that determines a kernel."""

    request: KernelRequest
    kernel: KernelName
    source: Source
    changed: dict[str, bytes | None]
    compiler: str

    @property
    def ours(self) -> bool:
        return has_our_code(self.source, self.changed)

    @cached_property
    def options(self) -> str:
        """The fragments."""
        asked = self.request
        return config.merge(
            asked.arch,
            asked.page_size,
            asked.profile,
            asked.extras,
            version=self.source.version,
            label=self.kernel.label,
            ours=self.ours,
        )

    @property
    def hash(self) -> str:
        kunit = "CONFIG_KUNIT=y" in self.options.splitlines()
        built = {file: content for file, content in self.changed.items() if is_built(file, kunit=kunit)}
        arch = self.request.arch.name
        return digest([self.source.identity, arch, self.options, self.compiler, *parts_of(built)])

    @property
    def described(self) -> BuiltKernel:
        """What will be built of them. Its release lacks what a tree adds to its version, such as -rc1."""
        asked, key = self.request, self.hash
        image = kernels_directory() / key / asked.arch.image
        release = f"{self.source.version}-foliolab-{self.kernel.label}"
        of_request = (self.kernel.text, asked.profile, asked.arch, release, asked.page_size)
        return BuiltKernel(key, image, *of_request, self.ours, self.compiler)

    @property
    def name(self) -> str:
        extras = "".join(f" with {extra}" for extra in self.request.extras)
        return f"{self._machine} {self.request.profile} {self.kernel.text}{extras}"

    @property
    def directory(self) -> Path:
        """Where it is built. What differs in most extras, refs or series of the user's shares it: each is an
        incremental build after the other."""
        apart = "".join(f"-{extra}" for extra in self.request.extras if extra in _APART)
        name = f"{self.source.home.name}-{self._machine}-{self.request.profile}{apart}-{self.kernel.tree}"
        return cache_directory() / "build" / name

    @property
    def _machine(self) -> str:
        """Architecture, and page size where there is a choice."""
        arch = self.request.arch
        return f"{arch.name}-{size_name(self.request.page_size)}" if len(arch.page_sizes) > 1 else arch.name


def has_our_code(source: Source, changed: Mapping[str, bytes | None]) -> bool:
    """Whether a tree has our code, from a series on top of it or by itself."""
    return changed.get(_OUR_FILE) is not None or source.read(_OUR_FILE) is not None


def identify(request: KernelRequest) -> BuiltKernel:
    """As ``build``, but a kernel of sources that the cache lacks is not built: it is described, and has no files."""
    if parse_name(request.kernel).image:
        return build(request)
    with _gathered(request) as inputs:
        return _found(inputs) or inputs.described


def build(request: KernelRequest) -> BuiltKernel:
    """The kernel asked for: from the cache, or built, incrementally where one like it was built before.

    Raises UnknownKernel, SourceError, HookError, SeriesError, ConfigError or BuildError.
    """
    name = parse_name(request.kernel)
    if timed_disk.EXTRA in request.extras:
        timed_disk.check_names([name.text])
    if name.image:
        return _packaged(request, name)
    with _gathered(request) as inputs, ExitStack() as block:
        hold_build_lock(block, unless=lambda: _found(inputs) is not None)
        return _found(inputs) or _built(inputs)


def _built(inputs: _Inputs) -> BuiltKernel:
    """The kernel, made. The caller holds the build lock."""
    with full_disk_named(inputs.directory), unfinished_swept(inputs.directory):
        tree = _configure(inputs)
        _make(inputs, tree, ["default", "kernel"], f"Building Linux {inputs.source.version}, {inputs.name}")
        return _published(inputs.hash, lambda place: _take(inputs, place))


def _packaged(request: KernelRequest, name: KernelName) -> BuiltKernel:
    """A kernel that is not built: from the cache, or unpacked from its package."""
    arch = request.arch
    if request.profile != "lab":
        raise UsageError(
            f"{name.text} is not built here: there is no profile {request.profile} of it, nor a shell on it."
        )
    if lacking := {*request.extras} - {"xfs", timed_disk.EXTRA}:
        raise UsageError(f"{name.text} is not built here: {', '.join(sorted(lacking))} cannot be built in.")
    if request.page_size != arch.page_sizes[0]:
        raise UsageError("Debian's kernels are taken with the smallest pages of their architecture.")

    def make(partial: Path) -> None:
        with working(f"Unpacking {name.text}"):
            release, version = debian_kernel.unpacked(packages, arch, partial)
        description = {"release": release, "version": version, "packaged": True, "name": name.text}
        description |= {"arch": arch.name, "page_size": request.page_size, "profile": "lab", "ours": False}
        write_atomic(partial / "kernel.json", json.dumps(description, indent=1))

    packages = debian_kernel.fetched(name.image, arch, newest=request.newest)
    found = replace(_published(debian_kernel.identity(packages), make), name=name.text)
    if timed_disk.EXTRA in request.extras:
        disk = timed_disk.built(found.release, arch)
        found = replace(found, hash=digest([found.hash, disk.parent.name]), disk_module=disk)
    if name.module:
        ours = module.built(found.release, arch)
        found = replace(found, hash=digest([found.hash, ours.parent.name]), module=ours)
    return found


def clean() -> None:
    """Empty the cache of all that is made again when it is wanted."""
    with package_lock(), build_lock():
        for name in _CACHED:
            shutil.rmtree(cache_directory() / name, ignore_errors=True)


def package_lock() -> AbstractContextManager[None]:
    """One build of packages at a time; it may take hours, and lets other builds pass: its source trees are its own."""
    waiting = "Packages are being built; waiting for them."
    return locked(cache_directory() / "packages.lock", lambda: say(waiting))


@contextmanager
def _gathered(request: KernelRequest) -> Iterator[_Inputs]:
    """The inputs, of which none changes before the end of the block."""
    name = parse_name(request.kernel)
    _, version = compiler(request.arch)
    with held(name, newest=request.newest) as source:
        changed = applied(source, name.series)
        if timed_disk.EXTRA in request.extras:
            changed = timed_disk.with_driver(source, changed)
        yield _Inputs(request, name, source, changed, version.decode().splitlines()[0])


def _found(inputs: _Inputs) -> BuiltKernel | None:
    """The kernel if the cache has it, whatever it was called when it was built."""
    found = load_kernel(kernels_directory() / inputs.hash)
    return found and replace(found, name=inputs.kernel.text)


def _configure(inputs: _Inputs) -> Path:
    """Configure, check against the fragments, and return the source tree."""
    tree = working_tree(inputs.source, inputs.kernel.tree, inputs.changed)
    # tuxmake keeps a .config that exists, so a changed fragment would go unseen.
    (inputs.directory / ".config").unlink(missing_ok=True)
    _make(inputs, tree, ["config"], f"Configuring {inputs.name}")
    config.check(inputs.options, (inputs.directory / ".config").read_text())
    return tree


def _make(inputs: _Inputs, tree: Path, targets: list[str], title: str) -> None:
    """Make targets of tuxmake's from a source tree."""
    directory, arch = inputs.directory, inputs.request.arch
    fragment = directory / "options.config"
    write_atomic(fragment, inputs.options)
    command = [
        sys.executable, "-m", "tuxmake", "--directory", str(tree), "--build-dir", str(directory),
        "--output-dir", str(directory / "artifacts"), "--target-arch", arch.name,
        "--kernel-image", arch.image,
        # allnoconfig takes the options it is given and leaves everything else off.
        "--kconfig", "allnoconfig", "--environment", f"KCONFIG_ALLCONFIG={fragment}", *targets,
    ]  # fmt: skip
    run_make(command, directory, targets[0], title)


def _published(key: str, make: Callable[[Path], None]) -> BuiltKernel:
    """The kernel with this hash in the cache, made if it is not there whole."""
    home = kernels_directory()
    if not load_kernel(home / key):
        shutil.rmtree(home / key, ignore_errors=True)  # there only if it was damaged
    kernel = load_kernel(made_once(home, key, make))
    assert kernel
    return kernel


def _take(inputs: _Inputs, place: Path) -> None:
    """Put what was built into a directory that is empty."""
    directory = inputs.directory
    shutil.copyfile(directory / "artifacts" / inputs.request.arch.image, place / inputs.request.arch.image)
    shutil.copyfile(directory / "System.map", place / "System.map")
    shutil.copyfile(directory / ".config", place / "config")
    description = {
        "release": (directory / "include/config/kernel.release").read_text().strip(),
        "arch": inputs.request.arch.name,
        "page_size": inputs.request.page_size,
        "name": inputs.kernel.text,
        "ours": inputs.ours,
        "profile": inputs.request.profile,
        "compiler": inputs.compiler,
    }
    write_atomic(place / "kernel.json", json.dumps(description, indent=1))

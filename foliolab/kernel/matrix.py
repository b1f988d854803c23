# SPDX-License-Identifier: GPL-2.0-only
"""Compiling what a series changes, and nothing else, for configurations that the lab does not boot."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from msgspec import Struct, structs

from foliolab import process
from foliolab.errors import BuildError, ConfigError, UsageError, require_known
from foliolab.files import KERNEL, cache_directory, digest, digest_files, full_disk_named, write_atomic
from foliolab.kernel import config
from foliolab.kernel.held import held
from foliolab.kernel.make import build_lock, first_error, logged, unfinished_swept
from foliolab.kernel.name import OURS, KernelName, parse_name
from foliolab.kernel.series import applied, bases, parts_of
from foliolab.kernel.source import Source
from foliolab.kernel.tree import working_tree
from foliolab.process import run, tool
from foliolab.toml import Place, Text, Texts, read_toml

MATRIX = KERNEL / "config/matrix.toml"

_JUDGES = (*(Path(__file__).with_name(f"{name}.py") for name in ("matrix", "make", "config")), Path(process.__file__))
"""By which complaints are known."""

_DIVISIONS = r"__u?(?:div|mod|divmod)di[34]|__aeabi_u?ldivmod"
"""What compilers call for divisions of 64 bits where processors have none; no kernel links it."""


class Target(Struct, frozen=True, forbid_unknown_fields=True):
    """A configuration to compile for."""

    name: str
    arch: Text
    """As ``make ARCH=`` takes it."""
    compiler: Text
    on: Texts = ()
    off: Texts = ()
    alone: bool = False
    """Whether it goes without the options of all."""

    @property
    def options(self) -> dict[str, str]:
        """What has to be y or n, on top of allnoconfig."""
        return dict.fromkeys(self.on, "y") | dict.fromkeys(self.off, "n")

    @property
    def sources(self) -> str:
        """The directory with the architecture's source."""
        return f"arch/{'x86' if self.arch in ('i386', 'x86_64') else self.arch}/"


@dataclass(frozen=True)
class TargetOutcome:
    """What came of compiling a kernel's series for a target."""

    target: str
    kernel: str
    version: str
    objects: tuple[str, ...]
    """Those that the configuration has of the series' files."""
    complaints: tuple[str, ...]
    """Errors and warnings, with W=1, or what the kernel cannot be configured for; none if all is well."""


@dataclass(frozen=True)
class _Compilation:
    """A series, and a target to compile it for."""

    kernel: KernelName
    source: Source
    changed: Mapping[str, bytes | None]
    target: Target
    compiler: str
    """What it says of itself."""

    @property
    def options(self) -> str:
        """A fragment."""
        return config.text(config.known(self.target.options, self.source.version, OURS in self.kernel.series))

    @property
    def note(self) -> Path:
        """Where the outcome is kept."""
        how = [self.source.identity, self.target.arch, self.options, self.compiler, *parts_of(self.changed)]
        return cache_directory() / "matrix" / f"{digest([digest_files(_JUDGES), *how])}.json"

    @property
    def directory(self) -> Path:
        name = f"{self.source.home.name}-matrix-{self.target.name}-{self.kernel.tree}"
        return cache_directory() / "build" / name

    def kept(self) -> TargetOutcome | None:
        """The outcome of before, if there is one."""
        try:
            facts = json.loads(self.note.read_text())
        except (OSError, ValueError):
            return None
        lists = {name: tuple(facts[name]) for name in ("objects", "complaints")}
        return TargetOutcome(self.target.name, self.kernel.text, facts["version"], **lists)

    def run(self, tree: Path) -> TargetOutcome:
        """Configure, compile, and keep the outcome. The caller holds the build lock."""
        directory = self.directory
        with full_disk_named(directory), unfinished_swept(directory):
            make = ["make", "--silent", "-C", str(tree), f"O={directory}", f"ARCH={self.target.arch}"]
            make += [f"CROSS_COMPILE={self.target.compiler.removesuffix('gcc')}", f"--jobs={os.cpu_count()}"]
            objects: list[str] = []
            try:
                self._configure(make)
                objects = self._objects(tree)
                complaints = self._compile(make, objects, tree)
            except ConfigError as error:
                complaints = [str(error)]
        outcome = TargetOutcome(
            self.target.name, self.kernel.text, self.source.version, tuple(objects), tuple(complaints)
        )
        write_atomic(self.note, json.dumps(asdict(outcome), indent=1))
        return outcome

    def _configure(self, make: Sequence[str]) -> None:
        fragment = self.directory / "options.config"
        write_atomic(fragment, self.options)
        for goal in ("allnoconfig", "syncconfig"):
            run([*make, goal], BuildError, env=os.environ | {"KCONFIG_ALLCONFIG": str(fragment)})
        config.check(self.options, (self.directory / ".config").read_text())

    def _compile(self, make: Sequence[str], objects: Sequence[str], tree: Path) -> list[str]:
        """What is wrong with the objects, all of which are made anew: make says nothing of one that is there."""
        if not objects:
            return []
        files = [self.directory / name for name in objects]
        for file in files:
            file.unlink(missing_ok=True)
        command = [*make, "--keep-going", "W=1", *objects]
        title = f"Compiling {self.kernel.text} for {self.target.name}"
        status, words = logged(command, self.directory, self.directory / "objects.log", title)
        complaints = _complaints(words, tree)
        if status and not complaints:
            complaints = [first_error(words)]
        return complaints + _divisions(self.target, files)

    def _objects(self, tree: Path) -> list[str]:
        """The objects of the C files that the series has changed, as far as the Makefiles beside them name these."""
        sources = [
            PurePath(file) for file, content in self.changed.items() if file.endswith(".c") and content is not None
        ]
        found = []
        for place in sorted({str(file.parent) for file in sources}):
            if place.startswith(("tools/", "scripts/", "samples/", "Documentation/")):
                continue
            if place.startswith("arch/") and not f"{place}/".startswith(self.target.sources):
                continue
            named = self._named_by_makefile(tree, place)
            found += [
                f"{place}/{file.stem}.o" for file in sources if str(file.parent) == place and f"{file.stem}.o" in named
            ]
        return found

    def _named_by_makefile(self, tree: Path, place: str) -> set[str]:
        """What the Makefile of a directory has for objects in this configuration, and their parts."""
        lines = [
            f"srctree := {tree}",
            f"src := {tree}/{place}",
            f"obj := {place}",
            "include include/config/auto.conf",
            "include $(srctree)/scripts/Kbuild.include",
            f"include $(srctree)/{place}/Makefile",
            "objects := $(obj-y) $(obj-m) $(lib-y)",
            "$(info $(objects) $(foreach one,$(objects:.o=),$($(one)-y) $($(one)-objs)))",
            "all:;@:",
        ]
        argv = ["make", "--silent", "--directory", str(self.directory), "--file=-", "all"]
        return set(run(argv, BuildError, stdin="\n".join([*lines, ""]).encode()).decode().split())


class _Common(Struct, forbid_unknown_fields=True):
    on: Texts


class _Matrix(Struct, forbid_unknown_fields=True):
    common: _Common
    targets: dict[str, Any]


def read_targets(names: Sequence[str] = (), file: Path = MATRIX) -> list[Target]:
    """The targets of these names, or all.

    Raises UsageError for one that is not there, BadExperiment for a mistake in the file.
    """
    top = Place(file)
    matrix = top.convert(read_toml(file), _Matrix)
    known = top.at("targets").named(matrix.targets, Target)
    require_known("There is no target", names, known)
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    return [each if each.alone else structs.replace(each, on=(*matrix.common.on, *each.on)) for each in chosen]


def ported_kernels() -> list[str]:
    """The kernels that our series is made for, by name."""
    return [parse_name(f"debian:{version}+{OURS}").text for version in bases()]


def compiled(kernel: str, targets: Sequence[Target]) -> list[TargetOutcome]:
    """What comes of each target; that of before where nothing has changed since.

    Raises UsageError for a kernel without a series, MissingTool without a compiler, and whatever may be wrong with the
    kernel's name and series.
    """
    name = parse_name(kernel)
    if not name.series:
        raise UsageError(f"{name.text} has no series whose files could be compiled; write for instance patched.")
    compilers = {each.name: run([tool(each.compiler), "--version"], BuildError).decode() for each in targets}
    with held(name) as source:
        changed = applied(source, name.series)
        jobs = [_Compilation(name, source, changed, each, compilers[each.name].splitlines()[0]) for each in targets]
        if not all(job.kept() for job in jobs):
            with build_lock():
                tree = working_tree(source, name.tree, changed)
                return [job.kept() or job.run(tree) for job in jobs]
    return [kept for job in jobs if (kept := job.kept())]


def _complaints(log: str, tree: Path) -> list[str]:
    """Errors and warnings, each once, without the place of the tree."""
    lines = [line for line in log.splitlines() if re.search(r"\b(?:error|warning): ", line)]
    return list(dict.fromkeys(line.replace(f"{tree}/", "") for line in lines))


def _divisions(target: Target, objects: Sequence[Path]) -> list[str]:
    """Divisions of 64 bits that no kernel for this processor can be linked with."""
    nm = tool(f"{target.compiler.removesuffix('gcc')}nm")
    complaints = []
    for file in filter(Path.exists, objects):
        wanted = run([nm, "--undefined-only", str(file)], BuildError).decode()
        complaints += [
            f"{file.name} needs {name}, which no kernel has" for name in re.findall(rf"\b(?:{_DIVISIONS})\b", wanted)
        ]
    return complaints

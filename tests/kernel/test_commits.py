# SPDX-License-Identifier: GPL-2.0-only
"""Each commit of the series by itself: it compiles without a new warning of W=1 and sparse, and passes KUnit."""

import os
import re
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import pytest

from foliolab.arch import ARM64, NATIVE, X86_64, Architecture
from foliolab.errors import BuildError
from foliolab.files import cache_directory, digest, locked, write_atomic
from foliolab.kernel import config
from foliolab.kernel.code import is_built
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.make import unfinished_swept
from foliolab.kernel.series import commits, read_series
from foliolab.kernel.source import Source
from foliolab.kernel.tree import working_tree
from foliolab.process import compiler, run, tool
from foliolab.vm.outcome import splats
from tests.conftest import ALL_COMMITS, BUILT_BASES
from tests.kernel.selftests import check_kunit

pytestmark = pytest.mark.boot

_ARCHITECTURES = (X86_64, ARM64) if ALL_COMMITS else (X86_64,)
"""Each takes some four minutes of a processor for 6.12, once."""

_BOOT_SECONDS = 300

PLANTED = "mm/readahead.c: warning: symbol 'planted' was not declared. Should it be static?"


class Walk:
    """A source tree that goes from the pristine one through the commits, and what is built from it for one machine."""

    def __init__(self, source: Source, arch: Architecture) -> None:
        self.arch = arch
        self.source = source
        self.features = read_series(source.version)
        self.contents = commits(source, self.features)
        self.state: dict[str, bytes | None] = {}
        self.directory = cache_directory() / "build" / f"{source.home.name}-commits-{arch.name}"

    @property
    def objects(self) -> list[str]:
        """All that the series changes or brings, as far as it is there yet, but for what another one includes."""
        texts = {file: text for content in self.contents for file, text in content.items()}
        files = {file for file in texts if re.match(r"(mm|fs|arch/\w+/mm)/.*\.c$", file)}
        names = (name.decode() for text in texts.values() for name in re.findall(rb'#include "(\w+\.c)"', text))
        included = {f"mm/{name}" for name in names}
        present = (file for file in sorted(files - included) if (self.tree / file).exists())
        return [
            file[:-1] + "o" for file in present if not file.startswith("arch/") or f"arch/{self.arch.source}/" in file
        ]

    def to(self, content: dict[str, bytes]) -> None:
        """Go on by a commit, or with nothing back to the pristine tree."""
        if not content:
            self.state = {}
            # Named, so that what a walk has changed is written anew: make has to see it.
            pristine = {file: self.source.read(file) for each in self.contents for file in each}
            self.tree = working_tree(self.source, "commits", pristine)
        else:
            for file, text in content.items():
                if not (self.tree / file).exists() or (self.tree / file).read_bytes() != text:
                    write_atomic(self.tree / file, text)
        self.state |= content
        if not content or any("Kconfig" in file for file in content):
            self.configure()

    @cached_property
    def options(self) -> dict[str, str]:
        fragments = (Path(__file__).parent / f"commits{part}.config" for part in ("", f"-{self.arch.name}"))
        options = config.parse("".join(each.read_text() for each in fragments))
        return config.known(options, self.source.version, ours=True)

    @property
    def key(self) -> str:
        """Of what decides what the compiler and sparse say."""
        parts: list[bytes | str] = [Path(__file__).read_bytes(), self.source.identity, self.arch.name]
        parts += [config.text(self.options), compiler(self.arch)[1], run([tool("sparse"), "--version"], BuildError)]
        for feature, content in zip(self.features, self.contents, strict=True):
            parts.append(feature.patch.name)
            for file, text in content.items():
                parts += (file, text) if is_built(file, kunit=True) else ()
        return digest(parts)

    def configure(self) -> None:
        fragment = self.directory / "options.config"
        # allnoconfig passes over what the tree has not yet.
        write_atomic(fragment, config.text(self.options))
        self.make("allnoconfig", environment={"KCONFIG_ALLCONFIG": str(fragment)})

    def make(self, *targets: str, environment: dict[str, str] | None = None) -> str:
        """What make has to say. It must not fail."""
        prefix = [] if self.arch is NATIVE else [f"CROSS_COMPILE={self.arch.compiler.removesuffix('gcc')}"]
        command = ["make", "--silent", f"ARCH={self.arch.source}", *prefix, "-C", str(self.tree), "-j2"]
        command += [f"O={self.directory}", "W=1", *targets]
        done = subprocess.run(
            command, env=os.environ | (environment or {}), capture_output=True, text=True, errors="replace", check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout + done.stderr

    def complaints(self) -> set[str]:
        """Warnings about the objects, without line numbers, which our hooks shift."""
        lines = self.make("C=1", *self.objects).replace(f"{self.tree.resolve()}/", "").splitlines()
        return {re.sub(r":\d+:(\d+:)?", ":", line) for line in lines if "warning:" in line or "error:" in line}

    def planted(self) -> set[str]:
        """Complaints of a tree with a fault that only sparse sees."""
        file = self.tree / "mm/readahead.c"
        original = file.read_bytes()
        write_atomic(file, original + b"\nint planted;\n")
        found = self.complaints()
        write_atomic(file, original)
        return found

    def all_complaints(self, consoles: Path) -> dict[str, list[str]]:
        """Those that the pristine tree has not: of one with a planted fault, and of each commit, by its patch."""
        self.to({})
        for target in self.objects:
            (self.directory / target).unlink(missing_ok=True)
        before = self.complaints()
        found = {"planted": sorted(self.planted() - before)}
        for feature, content in zip(self.features, self.contents, strict=True):
            started, used = time.monotonic(), cpu_seconds()
            self.to(content)
            found[feature.patch.name] = sorted(self.complaints() - before)
            if ALL_COMMITS and self.arch is X86_64:
                kunit(self, consoles / f"{feature.patch.stem}.log")
            print(f"{feature.patch.stem}: {time.monotonic() - started:.0f} s, CPU {cpu_seconds() - used:.0f} s")
        config.check(config.text(self.options), (self.directory / ".config").read_text())
        return found


@contextmanager
def walk(version: str, arch: Architecture) -> Iterator[Walk]:
    source = from_debian(version)
    with locked(cache_directory() / "commits.lock"):
        walk = Walk(source, arch)
        with unfinished_swept(walk.directory):
            yield walk


def kunit(steps: Walk, console: Path) -> None:
    """Build the rest of the kernel and boot it without a user space: each suite of ours that it has passes."""
    steps.make("bzImage")
    command = [
        *("qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-m", "512", "-accel", "tcg,thread=single"),
        *("-nographic", "-no-reboot", "-nodefaults", "-serial", f"file:{console}"),
        *("-kernel", str(steps.directory / "arch/x86/boot/bzImage")),
        *("-append", "console=ttyS0 panic=-1 kunit_shutdown=reboot"),
    ]
    subprocess.run(command, timeout=_BOOT_SECONDS, check=True, capture_output=True)
    suites = sorted(path.name.removesuffix("_kunit.c") for path in map(Path, steps.state) if path.match("mm/*_kunit.c"))
    words = console.read_text(errors="replace")
    assert "Linux version" in words
    check_kunit(words, tuple(suites), steps.tree)
    assert splats(words) == []


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("arch", _ARCHITECTURES, ids=lambda arch: arch.name)
@pytest.mark.parametrize("version", BUILT_BASES)
def test_each_commit_compiles_without_a_new_warning(version: str, arch: Architecture, tmp_path: Path) -> None:
    """With all commits, it passes KUnit as well, which takes ten more minutes of a processor for 6.12.

    What has passed is kept, as outcomes of 'kernel matrix' are, and compiled again only for KUnit.
    """
    with walk(version, arch) as steps:
        passed = cache_directory() / "outcomes" / steps.key
        if passed.exists() and not (ALL_COMMITS and arch is X86_64):
            return
        found = steps.all_complaints(tmp_path)
        assert found.pop("planted") == [PLANTED]  # or sparse has not looked
        assert found == {feature.patch.name: [] for feature in steps.features}
        write_atomic(passed, "")

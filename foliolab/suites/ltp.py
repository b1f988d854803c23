# SPDX-License-Identifier: GPL-2.0-only
"""The Linux Test Project's tests of mapped files and memory, compiled statically from a git tree of the user's."""

import os
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from foliolab import process
from foliolab.arch import Architecture
from foliolab.errors import BuildError, SourceError, UsageError
from foliolab.files import cache_directory, digest, full_disk_named, made_once
from foliolab.progress import working
from foliolab.suites.ktap import End, together
from foliolab.suites.packages import DebianGuest
from foliolab.suites.suite import SUITES, ForeignSuite, SuiteOptions, chosen
from foliolab.toml import Place, Text, Texts, read_toml
from foliolab.vm.accel import Accelerator
from foliolab.vm.guest import Disk
from foliolab.vm.tree import make_ext4

SKIPPED = 32  # the tests' exit status
_FLAGS = ("CFLAGS=-O2 -w", "LDFLAGS=-static -s")
_SPARE_BYTES = 320 << 20
_ENVIRONMENT = {
    "PATH": "/files/testcases/bin:/usr/sbin:/usr/bin",
    "TMPDIR": "/data",
    "LTPROOT": "/files",
    "LTP_COLORIZE_OUTPUT": "n",
    "LTP_DEV": "/dev/vdd",
    "LTP_DEV_FS_TYPE": "ext4",
    "LTP_RUNTIME_MUL": "0.1",  # what runs for a time would take minutes
    "KCONFIG_PATH": "/files/testcases/config",
}
_WHAT = re.compile(r"^(?:\S+:\d+: |\S+ +\d+ +)(?P<kind>TPASS|TFAIL|TBROK|TWARN|TCONF)(?: *[:(])? *(?P<words>.*)")
_CHANGING = re.compile(r"0x[0-9a-f]+|\bLTP_\w+|\d[\d.]*")  # addresses, places, figures
_VERDICTS = {"TPASS": End.PASS, "TCONF": End.SKIP}


class Choice(Struct, frozen=True, forbid_unknown_fields=True):
    """What is run of LTP, as SUITES says it."""

    directories: Texts
    """Below testcases/, where the programs are."""
    chosen: dict[str, Text]
    """By the file of runtest/ that lists them, a pattern of the tests' names."""
    left_out: dict[str, Text]
    """Of these, what is not run, and why."""


CHOICE = Place(SUITES, "ltp").convert(read_toml(SUITES)["ltp"], Choice)


@dataclass(frozen=True)
class Listed:
    """A line of a file in runtest/."""

    group: str
    """The file."""
    command: str
    """For a shell."""

    @property
    def program(self) -> str:
        """What has to have been compiled."""
        return self.command.rpartition(";")[2].split()[0]


def ltp(asked: SuiteOptions, arch: Architecture) -> ForeignSuite:
    """The commit that the tree stands on, compiled; SourceError if the tree is none of LTP."""
    asked.refuse("ltp", "seconds", "seed")
    if asked.source is None:
        raise UsageError("--suite ltp takes --source DIR, a git tree of LTP.")
    try:
        top, commit = _git(asked.source, "rev-parse", "--show-toplevel", "HEAD").decode().splitlines()
        lists = {name: _git(Path(top), "show", f"{commit}:runtest/{name}").decode() for name in CHOICE.chosen}
        version = _git(Path(top), "describe", "--tags", "--always").decode().strip()
    except SourceError as error:
        raise SourceError(f"{asked.source} is no git tree of LTP with the tests that are run: {error}") from error
    tests = read_lists(lists)
    names = chosen({name: test.program for name, test in tests.items()}, asked.tests, "ltp")
    programs, key = _built(Path(top), commit, {test.program for test in tests.values()}, arch)
    guest = ltp_guest(programs)
    calls = {
        name: guest.call(
            tests[name].command, (repr(tests[name]), key, repr(_ENVIRONMENT)), f"runtest/{tests[name].group}"
        )
        for name in names
    }
    title = f"LTP {version} ({commit[:12]}) on Linux {{version}}"
    return ForeignSuite(title, "ltp", "2", calls, parse, SKIPPED, left_out=CHOICE.left_out)


def _git(place: Path, *arguments: str) -> bytes:
    return process.git(SourceError, *arguments, place=place, alone=False)


def ltp_guest(programs: Path) -> DebianGuest:
    """The guest that tests run in: behind a disk with their ``programs``, one that is theirs to format."""
    spare = cache_directory() / "disks" / "spare.raw"
    spare.parent.mkdir(parents=True, exist_ok=True)
    with full_disk_named(spare), spare.open("ab") as stream:
        stream.truncate(_SPARE_BYTES)
    disks = (Disk(programs, "raw"), Disk(spare, "raw"))
    return DebianGuest(("e2fsprogs", "mount", "xfsprogs"), 1024, 300, disks, _environment)


def _environment(accelerator: Accelerator) -> dict[str, str]:
    # An emulated guest's clock can run many times as fast as its programs: our deadline is by the host's.
    return {**_ENVIRONMENT, "LTP_TIMEOUT_MUL": "1" if accelerator.real_time else "100"}


def read_lists(lists: Mapping[str, str]) -> dict[str, Listed]:
    """The tests that are run, of the texts of the files in runtest/; one that two list is as the first has it."""
    left_out = {name for names in CHOICE.left_out for name in names.split(", ")}
    tests: dict[str, Listed] = {}
    for group, pattern in CHOICE.chosen.items():
        for line in lists[group].splitlines():
            name, _, command = line.partition("#")[0].replace("\t", " ").partition(" ")
            if command and re.fullmatch(pattern, name) and name not in left_out:
                tests.setdefault(name, Listed(group, command.strip()))
    return tests


def _built(tree: Path, commit: str, called: Collection[str], arch: Architecture) -> tuple[Path, str]:
    """An ext4 file system with all programs, made unless the cache has it, and a hash of what it is made of."""
    compiler, version = process.compiler(arch)
    key = digest(["1", commit, arch.name, version, *_FLAGS, *CHOICE.directories])

    def make(partial: Path) -> None:
        source, programs = partial / "source", partial / "programs"
        source.mkdir()
        archive = _git(tree, "archive", commit)
        process.run([process.tool("tar"), "--extract", "--directory", str(source)], BuildError, stdin=archive)
        _compile(source, arch, compiler)
        _collect(source, programs, called)
        make_ext4(partial / "disk", None, programs)
        shutil.rmtree(source)
        shutil.rmtree(programs)

    return made_once(cache_directory() / "ltp", key, make) / "disk", key


def _compile(source: Path, arch: Architecture, compiler: str) -> None:
    process.require("ltp")
    make = [process.tool("make"), "--silent", f"--jobs={os.cpu_count() or 1}"]
    host = [] if arch.native else [f"--host={Path(compiler).name.removesuffix('-gcc')}"]
    with working("compiling LTP's tests", len(CHOICE.directories) + 2) as task:
        task.note("configure")
        process.run([*make, "autotools"], BuildError, cwd=source)
        process.run(["./configure", "--quiet", *host, *_FLAGS], BuildError, cwd=source)
        task.advance()
        for directory in ("lib", *(f"testcases/{name}" for name in CHOICE.directories)):
            task.note(directory)
            process.run([*make, "-C", directory], BuildError, cwd=source)
            task.advance()


def _collect(source: Path, programs: Path, called: Collection[str]) -> None:
    """Copy all programs to one directory; BuildError if one that is called is missing."""
    programs.mkdir()
    for directory in CHOICE.directories:
        for path in (source / "testcases" / directory).iterdir():
            if path.is_file() and (path.name in called or os.access(path, os.X_OK)):  # a script may not be
                shutil.copyfile(path, programs / path.name)
                (programs / path.name).chmod(0o755)
    if lost := set(called) - {path.name for path in programs.iterdir()}:
        raise BuildError(f"LTP was compiled, but without {', '.join(sorted(lost))}.")


def parse(output: str) -> dict[str, End]:
    """The checks in a program's output by their words, without figures; one that is made often ends as its worst."""
    found: dict[str, End] = {}
    for line in output.splitlines():
        if match := _WHAT.match(line):
            name = _CHANGING.sub("N", match["words"]).strip() or match["kind"]
            found = together(found, {name: _VERDICTS.get(match["kind"], End.FAIL)}, min)
    return found

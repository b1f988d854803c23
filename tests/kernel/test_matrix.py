# SPDX-License-Identifier: GPL-2.0-only
"""Our objects for architectures and options that the lab does not boot."""

import json
import os
import re
import uuid
from pathlib import Path

import pytest

from foliolab.errors import BadExperiment, UsageError
from foliolab.files import KERNEL
from foliolab.kernel.matrix import compiled, ported_kernels, read_targets
from foliolab.kernel.source import Source
from foliolab.process import package_of
from tests.cli.command import lab, sentence

TELLING = ("i386-pae", "arm-nommu", "x86_64-bare")
"""Those of which one has found something, or finds what only it can."""
TARGET = '[common]\non = ["A"]\n[targets.t]\narch = "arm"\ncompiler = "c"\n'
TARGETS = [target.name for target in read_targets()] if os.environ.get("FOLIOLAB_MATRIX") == "all" else TELLING


@pytest.mark.boot
@pytest.mark.parametrize("kernel", ported_kernels())
@pytest.mark.parametrize("target", TARGETS)
def test_no_compiler_complains(kernel: str, target: str) -> None:
    (outcome,) = compiled(kernel, read_targets([target]))
    assert outcome.complaints == ()
    assert "mm/filemap.o" in outcome.objects


def test_targets_by_name() -> None:
    names = [target.name for target in read_targets()]
    assert set(TELLING) <= set(names)
    assert [target.name for target in read_targets(["riscv64", "i386-pae", "riscv64"])] == ["riscv64", "i386-pae"]
    with pytest.raises(UsageError, match=rf"There is no target 'vax'; known: {', '.join(names)}\."):
        read_targets(["vax"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'common' is missing"),
        ("[common", "is not valid TOML"),
        (TARGET.replace('compiler = "c"\n', ""), "'targets.t.compiler' is missing"),
        (TARGET + 'with = ["A"]\n', "'targets.t.with' is not a key that is known here"),
        (TARGET + 'name = "u"\n', "'targets.t.name' is not a key that is known here"),
        (TARGET.partition("[targets")[0] + "[targets]\nt = 7\n", "'targets.t' is wrong: expected `table`, got `int`"),
        (TARGET + 'off = "A"\n', "'targets.t.off' is wrong: expected `array`, got `str`"),
    ],
)
def test_mistakes_are_named(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "matrix.toml"
    file.write_text(text)
    with pytest.raises(BadExperiment, match=words):
        read_targets(file=file)


def test_what_a_target_turns_off_is_on_for_others() -> None:
    """Or it would be off in allnoconfig anyway, and the target would be none."""
    (thp,) = read_targets(["x86_64-no-thp"])
    (full,) = read_targets(["x86_64"])
    option = "CONFIG_TRANSPARENT_HUGEPAGE"
    assert (thp.options[option], full.options[option]) == ("n", "y")


def test_packages_of_compilers() -> None:
    packages = {package_of(target.compiler) for target in read_targets()}
    assert {"gcc-i686-linux-gnu", "gcc-arm-linux-gnueabi", "gcc-s390x-linux-gnu"} <= packages


def test_every_kernel_that_our_series_is_made_for_is_compiled() -> None:
    assert len(ported_kernels()) == len(list((KERNEL / "patches").iterdir()))
    assert "patched" in ported_kernels()


def test_a_compiler_that_is_missing_is_named(tmp_path: Path) -> None:
    done = lab("kernel", "matrix", "s390x", PATH=str(tmp_path), FOLIOLAB_CACHE=str(tmp_path / "cache"))
    assert sentence(done) == ("s390x-linux-gnu-gcc is not installed; 'apt-get install gcc-s390x-linux-gnu' brings it.")
    assert done.returncode == 30


@pytest.mark.parametrize("kernel", ["unpatched", "image:debian:6.12"])
def test_a_kernel_without_a_series_has_nothing_to_compile(kernel: str, tmp_path: Path) -> None:
    done = lab("kernel", "matrix", "x86_64", "--kernel", kernel, FOLIOLAB_CACHE=str(tmp_path))
    assert sentence(done) == f"{kernel} has no series whose files could be compiled; write for instance patched."
    assert done.returncode == 2


UNUSED = "static int nobody_calls_this(void) { return 0; }"
DIVIDES = "long long divided(long long, long long); long long divided(long long a, long long b) { return a / b; }"


def added(tree: Path, file: str, line: str) -> str:
    """A patch that puts a line behind the first one of a file."""
    first, *context = (tree / file).read_text().splitlines()[:4]
    hunk = ["@@ -1,4 +1,5 @@", f" {first}", f"+{line}", *(f" {text}" for text in context)]
    return "\n".join([f"--- a/{file}", f"+++ b/{file}", *hunk, ""])


@pytest.mark.boot
def test_complaints_are_told_and_kept(source: Source, tmp_path: Path) -> None:
    """With the sources and the build directory of the lab's own cache, where little is to be made."""
    patch = tmp_path / "series.patch"
    # In each run another one, of which nothing is kept.
    lines = {"mm/mincore.c": f"{UNUSED} {DIVIDES} /* {uuid.uuid4()} */", "mm/msync.c": "this is no C;"}
    patch.write_text("".join(added(source.tree, file, line) for file, line in lines.items()))
    argv = ("kernel", "matrix", "i386-pae", "--kernel", f"debian:6.12+{patch}", "--json")
    done = lab(*argv)
    assert done.returncode == 1, done.stderr
    (outcome,) = json.loads(done.stdout)["outcomes"]
    assert outcome["objects"] == ["mm/mincore.o", "mm/msync.o"]
    # Of files that are compiled at once, either may come first; what objects need is looked at in the end.
    *of_compilers, division = outcome["complaints"]
    (warning,) = (line for line in of_compilers if line.startswith("mm/mincore.c"))
    assert re.match(r"mm/mincore\.c:2:\d+: warning: .nobody_calls_this. defined but not used", warning)
    assert re.match(r"mm/msync\.c:2:\d+: error: ", next(line for line in of_compilers if line != warning))
    assert division == "mincore.o needs __divdi3, which no kernel has"
    again = lab(*argv)
    assert (again.stdout, again.returncode) == (done.stdout, 1)
    assert ("Compiling" in done.stderr, "Compiling" in again.stderr) == (True, False)

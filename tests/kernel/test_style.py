# SPDX-License-Identifier: GPL-2.0-only
"""What kernel reviewers run first. sparse and W=1 are tried here on the module; on patches, in test_commits.py."""

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from foliolab.arch import NATIVE, X86_64
from foliolab.errors import BuildError
from foliolab.files import MODULE, RELEASE
from foliolab.kernel import module
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.debian_headers import compiled, copy_sources, headers
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.name import OURS
from foliolab.kernel.series import applied, read_series
from foliolab.kernel.source import Source
from foliolab.process import run, tool
from tests.conftest import BASES
from tests.kernel.kept import kept, of_module


def checked_once(source: Source, patch: str) -> list[str]:
    """What checkpatch has to say about one patch."""
    scripts = (source.tree / "scripts" / name for name in ("checkpatch.pl", "spelling.txt", "const_structs.checkpatch"))
    decides: list[bytes | str] = [*(file.read_bytes() for file in (*scripts, Path(__file__))), patch]
    return kept(decides, lambda: checkpatch(source, patch))


def checkpatch(source: Source, patch: str, *files: Path) -> list[str]:
    """What checkpatch --strict has to say about one patch, or about whole files."""
    done = subprocess.run(
        ["perl", str(source.tree / "scripts/checkpatch.pl"), "--strict", "--no-tree", "--terse", "--showfile",
         "--show-types", *(["--file", *map(str, files)] if files else ["-"])],
        input=patch,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert (done.stderr, done.returncode) in (("", 0), ("", 1))
    return [line for line in done.stdout.splitlines() if re.search(r"(ERROR|WARNING|CHECK):", line)]


@pytest.mark.boot
@pytest.mark.parametrize("version", BASES)
def test_series_passes_checkpatch(version: str) -> None:
    """As the mailbox has it, but for who signs it off: that is whoever sends it."""
    source = from_debian(version)
    mbox = (RELEASE / f"{version}.mbox").read_text()
    patches = re.split(r"^(?=From 0{40} )", mbox, flags=re.MULTILINE)[1:]
    assert len(patches) == len(read_series(version))
    unsigned = "ERROR:MISSING_SIGN_OFF"
    complaints = [line for patch in patches for line in checked_once(source, patch) if unsigned not in line]
    # The form of TRACE_EVENT() is that of a struct, which checkpatch takes for a badly broken call.
    form = re.compile(r"^include/trace/events/\S+ CHECK:(PARENTHESIS_ALIGNMENT|OPEN_ENDED_LINE)")
    assert [line for line in complaints if form.match(line)]  # or it has not looked
    # A patch that adds files without a line for them: MAINTAINERS has one already, or a later one than for all files.
    added = re.compile(r"^(\S+?)(?::\d+:)? WARNING:FILE_PATH_CHANGES")
    maintainers = (applied(source, [OURS])["MAINTAINERS"] or b"").decode()
    listed = [pattern for pattern in re.findall(r"^F:\t(\S+)$", maintainers, re.MULTILINE) if pattern.strip("*/")]
    rest = [line for line in complaints if not form.match(line)]
    assert [line for line in rest if not (match := added.match(line)) or not _covers(listed, match[1])] == []


def _covers(patterns: list[str], file: str) -> bool:
    """Whether MAINTAINERS lists a file: by name, by its directory, or by a pattern."""
    return any(file.startswith(each) if each.endswith("/") else fnmatch(file, each) for each in patterns)


def test_module_passes_checkpatch(source: Source, tmp_path: Path) -> None:
    files = [path for name, path in module.sources().items() if path.parent == MODULE and path.suffix in (".c", ".h")]
    assert len(files) > 5
    assert checkpatch(source, "", *files) == []
    bad = tmp_path / "bad.c"
    bad.write_text("// SPDX-License-Identifier: GPL-2.0-only\nint a=1;\n")
    assert checkpatch(source, "", bad)  # or it has not looked


@pytest.mark.boot
@pytest.mark.skipif(NATIVE is not X86_64, reason="the module was tried on x86_64 only")
@pytest.mark.parametrize("version", ["6.1", "6.12"])  # packages of 7.3's headers lack the script for sparse
def test_no_warning_about_the_module(version: str, tmp_path: Path) -> None:
    found = headers(build(KernelRequest(NATIVE, f"image:debian:{version}")).release, NATIVE)
    place = tmp_path / "module"

    def warnings() -> list[str]:
        copy_sources(module.sources(), place)
        with (place / "memory.c").open("a") as stream:
            stream.write("\nint bad;\n")
        printed = compiled(place, found, NATIVE.compiler, "C=1", "W=1")
        # What headers of the kernel are warned about is not ours.
        return [line for line in printed.splitlines() if line.startswith(str(place)) and "warning:" in line]

    sparse = run([tool("sparse"), "--version"], BuildError)
    complaints = kept([sparse, *of_module(__file__, found, "warnings")], warnings)
    assert [line.partition("warning: ")[2] for line in complaints] == [
        "symbol 'bad' was not declared. Should it be static?"
    ], complaints

# SPDX-License-Identifier: GPL-2.0-only
"""One table has the options of a program: what is parsed, and what the help says."""

import subprocess
from pathlib import Path

import pytest

from foliolab.vm.image import program_sources
from tests.guest.program import failed

PROGRAMS = [name for name, source in program_sources().items() if '"options.h"' in source.read_text()]


def help_of(program: Path, *before: str) -> list[str]:
    done = subprocess.run([program, *before, "--help"], capture_output=True, check=True, text=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_help_fits_80_columns_and_what_is_no_option_is_refused(programs: dict[str, Path], name: str) -> None:
    lines = help_of(programs[name])
    assert lines[0].startswith(f"Usage: {name} ")
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line.startswith("  --")][-1] == "--help"
    assert failed(programs[name], "--no-such-option")[0] == 2


def test_the_help_says_what_is_so_without_an_option(programs: dict[str, Path]) -> None:
    lines = help_of(programs["strangers"])
    assert "  --seed N              of all that is random (default 1)" in lines
    assert "      none              nobody (default)" in lines
    assert not [line for line in help_of(programs["measure"]) if "default" in line]


def test_what_is_longer_than_its_column_has_a_line_for_itself(programs: dict[str, Path]) -> None:
    lines = help_of(programs["workload"])
    at = lines.index("      mmap-random-just-fits")
    assert lines[at + 1] == " " * 24 + "0.95 M at random, mapped anew now and then"


def test_options_can_be_joined_to_their_arguments_and_shortened(programs: dict[str, Path]) -> None:
    assert failed(programs["mprotect"], "--case=T4") == (2, "mprotect: --case has no value 'T4'; see --help.")
    assert failed(programs["mprotect"], "--ro", "0")[1] == "mprotect: --rounds takes a number of at least 1, not '0'."

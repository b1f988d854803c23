# SPDX-License-Identifier: GPL-2.0-only
"""What the adaptive window may grow to: its code, what it keeps of a file, and what a decision takes.

Whoever needs more is to say why, and to change the figure here.
"""

import re
from pathlib import Path
from statistics import fmean

import pytest

from foliolab import process
from foliolab.device import device_of
from foliolab.errors import BuildError
from foliolab.files import REPOSITORY
from foliolab.model.compiled import INCLUDES, WINDOW, WINDOW_HEADER
from foliolab.model.library import Counts
from foliolab.simulate.ablation import count_lines
from foliolab.simulate.runs import run
from foliolab.simulate.suite import load_suite

MOST_LINES = 462
"""Of code: no comments, blank lines, definitions of types, or lines of the preprocessor."""
MOST_CONSTANTS = 8
MOST_BYTES = 384
MOST_LOOKS, MOST_MEAN_LOOKS = 24, 4
"""At pages of the cache: by one decision, and by a miss of the suite in the mean."""

_PREPROCESSOR = re.compile(r"^#(?:.*\\\n)*.*\n", re.MULTILINE)
_NO_CONSTANTS = {"__MM_MMAP_READAHEAD_WINDOW_H"}


def test_lines_of_code() -> None:
    policy = WINDOW.read_text()
    lines = count_lines(_PREPROCESSOR.sub("", policy))
    print(f"{lines} lines of code")  # -rP
    assert 100 < lines <= MOST_LINES
    told = re.search(r"in\s(\d+)\slines\sof\scode\s\((\d+)\swith", (REPOSITORY / "docs/window.md").read_text())
    assert told and [int(number) for number in told.groups()] == [lines, count_lines(policy)]


def test_constants() -> None:
    text = WINDOW.read_text() + WINDOW_HEADER.read_text()
    constants = set(re.findall(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE)) - _NO_CONSTANTS
    print(f"{len(constants)} constants")
    assert 0 < len(constants) <= MOST_CONSTANTS


def test_bytes_for_a_file(tmp_path: Path) -> None:
    source, program = tmp_path / "size.c", tmp_path / "size"
    source.write_text(
        f'#include <stdio.h>\n#include "{WINDOW_HEADER}"\n'
        'int main(void) { printf("%zu", sizeof(struct mmap_readahead_state)); }\n'
    )
    process.run([process.tool("cc"), *INCLUDES, "-o", str(program), str(source)], BuildError)
    size = int(process.run([str(program)], BuildError))
    print(f"{size} bytes")
    assert 0 < size <= MOST_BYTES


@pytest.fixture(scope="module")
def suite_counts() -> list[Counts]:
    """Of the whole suite; without the rivals, and on two devices, that is no work."""
    suite, devices = load_suite(), [device_of("cloud"), device_of("hdd")]
    return [counts for runs in run(suite, suite.cases, devices, ["adaptive"]) for counts in runs.values()]


def test_looks_for_a_decision(suite_counts: list[Counts]) -> None:
    means = [counts.looks / counts.major_faults for counts in suite_counts]
    most = max(counts.most_looks for counts in suite_counts)
    print(f"{fmean(means):.2f} looks for a miss, in the worst run {max(means):.2f}, at most {most} at once")
    assert 0 < most <= MOST_LOOKS
    assert 0 < fmean(means) <= MOST_MEAN_LOOKS

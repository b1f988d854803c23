# SPDX-License-Identifier: GPL-2.0-only
"""The first steps for mainline apply to pristine kernels, commit by commit."""

import re
import shutil
from pathlib import Path

import pytest

from foliolab.files import REPOSITORY
from foliolab.kernel.debian import from_debian
from foliolab.kernel.series import applied
from foliolab.progress import Reporter
from tests.git import git

SUBJECTS = {
    "6.12": [
        "mm/filemap: trace what a miss in a mapped file reads",
        "mm/filemap: count a fault as one hit at most",
        "mm/filemap: go on with used pages at a miss in a mapped file",
        "mm/filemap: let the window around a miss shrink gradually",
    ],
    "7.3": [
        "mm/filemap: trace what a miss in a mapped file reads",
        "mm/filemap: go on with used pages at a miss in a mapped file",
        "mm/filemap: let the window around a miss shrink gradually",
    ],
}
FILES = ("include/trace/events/filemap.h", "mm/filemap.c")


def mailbox(version: str) -> Path:
    return REPOSITORY / f"release/first-steps-{version}.mbox"


@pytest.mark.boot
@pytest.mark.parametrize("version", SUBJECTS)
def test_git_takes_the_mailbox_as_the_lab_does(version: str, tmp_path: Path) -> None:
    source, place = from_debian(version, Reporter()), tmp_path / "linux"
    for file in FILES:
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.tree / file, place / file)
    git(place, "init", "--quiet")
    git(place, "add", ".")
    git(place, "commit", "--quiet", "--message", "Pristine")
    git(place, "am", "--quiet", str(mailbox(version)))
    commits = git(place, "log", "--reverse", "--format=%s").split("\n")[1:-1]
    assert commits == SUBJECTS[version]
    assert applied(source, [str(mailbox(version))]) == {file: (place / file).read_bytes() for file in FILES}


@pytest.mark.parametrize("version", SUBJECTS)
def test_constants_are_those_of_the_model(version: str) -> None:
    policy = (REPOSITORY / "model/policies/first_steps.c").read_text()
    series = mailbox(version).read_text()
    for ours, theirs, more in (
        ("HALVES", "MMAP_MISS_HALVES", 0), ("NEAR_PAGES", "MMAP_NEAR_PAGES", 0), ("HIT", "MMAP_HIT", 0),
        ("STREAM", "MMAP_HIT_STREAM", 0), ("NEAR", "MMAP_HIT_NEAR", 0), ("READ_ON", "MMAP_READ_ON", 0),
        ("REFAULT", "MMAP_MISS_REFAULT", 1),
    ):  # fmt: skip
        here, there = (
            re.findall(rf"#define {name}\s+(\d+)", text) for name, text in ((ours, policy), (theirs, series))
        )
        assert here and there, ours
        assert {int(each) + more for each in here} == {int(each) for each in there}, ours

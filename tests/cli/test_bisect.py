# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from tests.cli.command import lab
from tests.kernel.test_git import git


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    place = tmp_path / "linux"
    place.mkdir()
    git(place, "init", "--quiet")
    for number in range(2):
        git(place, "commit", "--quiet", "--allow-empty", f"--message={number}")
    return place


CELL = ("--cell", "pattern=random")


@pytest.mark.parametrize(
    ("good", "bad", "more", "status", "sentence"),
    [
        ("{tree}", "{tree}@HEAD", CELL, 2, "is no commit of a git tree; write TREE@REF"),
        ("debian:6.12", "{tree}@HEAD", CELL, 2, "'debian:6.12' is no commit of a git tree"),
        ("{tree}@HEAD~1", "{tree}@gone", CELL, 24, "has no ref 'gone'"),
        ("{tree}@HEAD~1", "{tree}@HEAD+ours", CELL, 2, "with the same series on top"),
        ("{tree}@HEAD", "{tree}@HEAD~1", CELL, 2, "is not an ancestor of"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (), 12, "5 cells are meant, such as random; stride 1021; stride 2053"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (*CELL, "--metric", "speed"), 2, "There is no metric 'speed'"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (*CELL, "--variant", "speed"), 11, "There is no variant 'speed'"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (*CELL, "--repetitions", "2"), 2, "has to be at least 3"),
        ("{tree}@HEAD~1", "{tree}@HEAD", CELL, 38, "an end of the search, cannot be measured"),
    ],
)
def test_what_makes_no_sense_is_said(
    tree: Path, tmp_path: Path, good: str, bad: str, more: tuple[str, ...], status: int, sentence: str
) -> None:
    ends = ["--good", good.format(tree=tree), "--bad", bad.format(tree=tree)]
    settings = {"FOLIOLAB_CACHE": str(tmp_path / "cache"), "FOLIOLAB_RESULTS": str(tmp_path / "results")}
    done = lab("bisect", "sparse-mmap", *ends, *more, **settings)
    assert done.returncode == status, done.stderr
    assert sentence in " ".join(done.stderr.split())
    assert done.stdout == ""

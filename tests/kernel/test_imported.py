# SPDX-License-Identifier: GPL-2.0-only
"""Branches of ours on their way back."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foliolab.errors import SeriesError
from foliolab.files import KERNEL, RELEASE, REPOSITORY, digest_files
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.git_source import Repository
from foliolab.kernel.imported import take_over
from foliolab.kernel.series import read_mail, read_series
from tests.conftest import BASES, reduced
from tests.git import git

pytestmark = pytest.mark.boot


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each version of Linux a branch that git has made of the mailbox, by somebody who signs it off."""
    places = {version: tmp_path_factory.mktemp("made") / version for version in BASES}
    for version, place in places.items():
        reduced(from_debian(version), place)
        git(place, "init", "--quiet", "--initial-branch=foliolab")
        git(place, "add", "--all", "--force")
        git(place, "commit", "--quiet", "--message=Linux")
        git(place, "am", "--quiet", "--signoff", str(RELEASE / f"{version}.mbox"))
    return places


@pytest.fixture(autouse=True)
def cache(made: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test derives of branches goes with it."""
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def branches(made: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    """Copies that a test may change."""
    return {version: shutil.copytree(place, tmp_path / version) for version, place in made.items()}


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A copy of kernel/ that a test may change."""
    return Path(shutil.copytree(KERNEL, tmp_path / "kernel"))


def everything(kernel: Path) -> str:
    return digest_files((path for path in kernel.rglob("*") if path.is_file()), kernel)


def amend(branch: Path, patch: str, version: str, file: str, old: str, new: str) -> None:
    """Have a commit of the branch say something else in a file, and those after it follow."""
    feature = next(feature for feature in read_series(version) if feature.patch.name == patch)
    subject = read_mail(feature.patch).subject
    commit = git(branch, "log", "--format=%H", "--fixed-strings", f"--grep={subject}", "foliolab").split()[-1]
    git(branch, "checkout", "--quiet", commit)
    text = (branch / file).read_text()
    assert text.count(old) == 1
    (branch / file).write_text(text.replace(old, new))
    git(branch, "commit", "--quiet", "--all", "--amend", "--no-edit")
    git(branch, "rebase", "--quiet", "--onto", "HEAD", commit, "foliolab")


@pytest.mark.parametrize("version", BASES)
def test_what_is_released_changes_nothing(version: str, made: dict[str, Path], kernel: Path) -> None:
    before = everything(kernel)
    assert take_over(Repository.at(made[version]), "foliolab", kernel) == []
    assert everything(kernel) == before


def test_what_another_kernel_needs_otherwise_is_in_its_patch(branches: dict[str, Path], kernel: Path) -> None:
    """A file that both have stays as it is for the other one."""
    file, patch = "mm/mmap_readahead_file.c", "adaptive-window.patch"
    amend(branches["7.3"], patch, "7.3", file, "#include <linux/slab.h>\n", "#include <linux/slab.h>\n/* 7.3 */\n")
    assert take_over(Repository.at(branches["7.3"]), "foliolab", kernel) == [kernel / "patches/7.3" / patch]
    assert "\n+/* 7.3 */\n" in (kernel / "patches/7.3" / patch).read_text()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the command is made of, and of what it writes to."""
    for name in ("foliolab", "host", "experiments", "kernel", "model"):
        shutil.copytree(REPOSITORY / name, tmp_path / "checkout" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "checkout"


def imported(checkout: Path, *argv: str | Path) -> list[str]:
    """What the command prints."""
    command = [sys.executable, "-m", "foliolab", "kernel", "import", *argv]
    settings = os.environ | {"FOLIOLAB_CACHE": str(checkout.parent / "cache")}
    done = subprocess.run(command, cwd=checkout, env=settings, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_edits_arrive_by_the_command_which_names_what_it_writes(branches: dict[str, Path], checkout: Path) -> None:
    """In a file of the kernel's, in a file of ours that later commits change as well, and in a changelog."""
    branch, patch, kernel = branches["6.12"], "mmap-honest-hits.patch", checkout / "kernel"
    amend(branch, patch, "6.12", "mm/filemap.c", "int at_address = -1;", "int at_address = -1; /* not seen */")
    amend(branch, patch, "6.12", "mm/mmap_readahead.c", "if (on > 1)", "if (on >= 2)")
    git(branch, "commit", "--quiet", "--amend", "--message", f"{git(branch, 'log', '-1', '--format=%s')}\nOther words.")
    last = read_series()[-1].patch.name
    names = {"files/mm/mmap_readahead.c", f"patches/6.12/{patch}", f"patches/6.12/{last}"}
    assert set(imported(checkout, f"{branch}@foliolab")) == {f"kernel/{name}" for name in names}
    assert read_mail(kernel / "patches/6.12" / last).message == "Other words.\n"
    assert "if (on >= 2)" in (kernel / "files/mm/mmap_readahead.c").read_text()
    assert "not seen" in (kernel / "patches/6.12" / patch).read_text()

    assert imported(checkout, branch) == ["Nothing differs."]


def refuse(branch: Path, kernel: Path, words: str) -> None:
    before = everything(kernel)
    with pytest.raises(SeriesError, match=words):
        take_over(Repository.at(branch), "foliolab", kernel)
    assert everything(kernel) == before


def test_a_commit_that_is_none_of_ours(branches: dict[str, Path], kernel: Path) -> None:
    git(branches["6.12"], "commit", "--quiet", "--allow-empty", "--message", "Something else")
    last = read_mail(read_series()[-1].patch).subject
    refuse(branches["6.12"], kernel, r"'Something else', is none of the series")
    git(branches["6.12"], "commit", "--quiet", "--allow-empty", "--amend", "--message", last)
    refuse(branches["6.12"], kernel, f"Two commits are called '{last}'")


def test_a_commit_that_is_gone(branches: dict[str, Path], kernel: Path) -> None:
    git(branches["6.12"], "reset", "--quiet", "--hard", "HEAD~1")
    refuse(branches["6.12"], kernel, f"has no commit '{read_mail(read_series()[-1].patch).subject}'")


def test_a_branch_of_somebody_else(branches: dict[str, Path], kernel: Path) -> None:
    git(branches["6.12"], "reset", "--quiet", "--hard", f"HEAD~{len(read_series())}")
    refuse(branches["6.12"], kernel, "no commit of ours")


def test_a_file_that_goes(branches: dict[str, Path], kernel: Path) -> None:
    git(branches["6.12"], "rm", "--quiet", "mm/readahead.c")
    git(branches["6.12"], "commit", "--quiet", "--amend", "--no-edit")
    refuse(branches["6.12"], kernel, r"removes mm/readahead\.c or changes its mode")

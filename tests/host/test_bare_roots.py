# SPDX-License-Identifier: GPL-2.0-only
"""The one file in root directories of Debian 12 and 13 that have Python and little else."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from foliolab.errors import LabError
from foliolab.files import cache_directory, digest, made_once
from foliolab.process import run, tool
from tests.host import small_programs
from tests.host.alone import Tools, file, judge_all
from tests.host.conftest import quiet_disk

__all__ = ["file", "quiet_disk"]

pytestmark = [
    pytest.mark.boot,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting in a root directory takes root"),
    pytest.mark.skipif(os.environ.get("FOLIOLAB_PYTHONS") != "all", reason="FOLIOLAB_PYTHONS=all tries them"),
]

SUITES = {"bookworm": 11, "trixie": 13}
"""Debian 12 and 13, and the minor version of their Python."""
ENTER = """\
mount --rbind /proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1/mnt"
mount --bind -o ro "$3" "$1/srv"
root=$1
shift 3
exec chroot "$root" "$@"
"""
"""For a shell in a mount namespace of its own, with which the mounts end."""


def bare_root(suite: str) -> Path:
    """The cache's root directory of a release, with its essential packages and Python."""
    argv = [tool("mmdebstrap"), "--quiet", "--mode=root", "--skip=chroot/mount/sys", "--variant=essential"]
    argv += ["--include=python3", suite]

    def make(partial: Path) -> None:
        run([*argv, str(partial / "root")], LabError)

    return made_once(cache_directory() / "roots", f"{suite}-{digest(argv)}", make) / "root"


def entries(tree: Path) -> dict[Path, tuple[int, int, int]]:
    """Mode, size and time of all that is in a directory."""
    found = ((path, path.lstat()) for path in tree.rglob("*"))
    return {path: (status.st_mode, status.st_size, status.st_mtime_ns) for path, status in found}


@pytest.mark.parametrize("suite", SUITES)
def test_small_programs_are_judged_where_there_is_python_alone(
    suite: str, file: Path, quiet_disk: Path, tmp_path: Path
) -> None:
    root = bare_root(suite)
    brought, empty = tmp_path / "brought", tmp_path / "empty"
    for place in (brought, empty):
        place.mkdir()
    for source in (file, Path(small_programs.__file__)):
        shutil.copy(source, brought)
    before = entries(root)
    entered_by = ("unshare", "--mount", "sh", "-e", "-c", ENTER, "sh", str(root), str(quiet_disk), str(brought))
    tools = Tools(SUITES[suite], "/usr/bin/python3", Path("/srv", file.name), empty, entered_by)
    said = tools.run("diagnose", "--json", "--", "sh", "-c", "python3 --version >&2; exit 7", status=7)
    assert '"verdict": "nothing-wrong"' in said
    judge_all(tools, quiet_disk / "file", f"/srv/{Path(small_programs.__file__).name}", "/mnt/file")
    assert entries(root) == before
    assert list(empty.iterdir()) == []
    assert str(root) not in subprocess.check_output(["mount"], text=True)

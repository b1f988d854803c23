# SPDX-License-Identifier: GPL-2.0-only
"""Root directories and data of programs in guests, through the real command line."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliolab.kernel.built import BuiltKernel
from tests.cli.act import cells, compiled
from tests.cli.command import lab, sentence
from tests.machines import ARM64_4K
from tests.tmpfs import tmpfs


@pytest.mark.boot
def test_data_goes_in_and_out_and_lasts(program: str, patched_kernel: BuiltKernel, tmp_path: Path) -> None:
    data, image = tmp_path / "data", tmp_path / "kept.qcow2"
    data.mkdir()
    (data / "log").write_text("host\n")
    # Two boots, because one variant sets switches and the other none.
    first = lab("exec", "--variant", "off,adaptive", "--data", str(data), "--keep", str(image),
                "--", program, "append", "guest", "0")  # fmt: skip
    assert (first.returncode, first.stdout) == (0, "host\nguest\nhost\nguest\nguest\n")
    assert (data / "log").read_text() == "host\n"
    kept = image.read_bytes()
    again = ["exec", "--data", str(image), "--keep"]
    assert "exists already" in sentence(lab(*again, str(image), "--", program, "append", "more", "0"))
    failed = lab(*again, str(tmp_path / "other"), "--", program, "append", "more", "3")
    assert (failed.returncode, failed.stdout) == (3, "host\nguest\nguest\nmore\n")
    assert "is not kept" in failed.stderr
    assert image.read_bytes() == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "kept.qcow2"]


@pytest.mark.boot
def test_a_root_of_packages_with_data_on_xfs(tmp_path: Path) -> None:
    ARM64_4K.kernel()  # outside of the command's time limit
    arch = ARM64_4K.arch
    data = tmp_path / "data"
    (data / "with blank").mkdir(parents=True)
    (data / "with blank/file").write_text("content\n")
    (data / "link").symlink_to("with blank/file")
    with (data / "holes").open("wb") as stream:
        stream.truncate(10 << 20)
    script = "hello && cat /data/link && stat -f -c %T / && stat -c '%s %b' /data/holes && /files/act write x 6"
    program = compiled(arch, tmp_path)
    hello = ("exec", "--arch", arch.name, "--packages", "hello")
    done = lab(*hello, "--data", str(data), "--filesystem", "xfs", "--copy", program,
               "--json", str(tmp_path / "json"), "--", "sh", "-c", script)  # fmt: skip
    assert (done.returncode, done.stdout) == (6, "Hello, world!\ncontent\nxfs\n10485760 0\nx\n")
    (cell,) = cells(tmp_path / "json", arch)
    assert cell["disks"]["root"]["read_bytes"] > cell["read_bytes"] > 0
    missing = lab(*hello, "--", "no-such")
    assert (missing.returncode, missing.stdout) == (127, "")
    assert "no-such: cannot be run: No such file or directory" in missing.stderr


@pytest.mark.boot
def test_a_root_of_the_hosts(program: str, patched_kernel: BuiltKernel, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "bin").symlink_to("usr/bin")
    shutil.copy(program, tree / "usr/bin")
    done = lab("exec", "--root", str(tree), "--data-size", "64M", "--", "act", "append", "x", "0")
    assert (done.returncode, done.stdout) == (0, "x\n"), done.stderr
    assert sorted(path.name for path in tree.iterdir()) == ["bin", "usr"]


@pytest.fixture
def small_place(tmp_path: Path) -> Iterator[Path]:
    """A mounted file system of 1 MiB."""
    with tmpfs(tmp_path / "small", "size=1m") as place:
        yield place


@pytest.mark.boot
def test_no_room_for_what_is_kept(program: str, patched_kernel: BuiltKernel, small_place: Path) -> None:
    done = lab("exec", "--data-size", "64M", "--keep", str(small_place / "image"), "--", program, "noise")
    assert sentence(done) == f"No space left on the disk that holds {small_place}."
    assert done.returncode == 40
    assert list(small_place.iterdir()) == []

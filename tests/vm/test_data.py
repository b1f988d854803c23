# SPDX-License-Identifier: GPL-2.0-only
import os
import subprocess
from pathlib import Path

import pytest

from foliolab.errors import UsageError
from foliolab.process import tool
from foliolab.vm.data import Image, data_of, keep
from foliolab.vm.guest import Disk
from foliolab.vm.tree import make_ext4


def qemu_img(*arguments: str | Path) -> None:
    subprocess.run(["qemu-img", *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_the_file_system_of_an_image_is_found(filesystem: str, tmp_path: Path) -> None:
    raw, packed = tmp_path / "raw", tmp_path / "packed"
    if filesystem == "ext4":
        make_ext4(raw, 16 << 20)
    else:
        raw.touch()
        os.truncate(raw, 320 << 20)
        subprocess.run([tool("mkfs.xfs"), "-q", raw], check=True)
    qemu_img("convert", "-f", "raw", "-O", "qcow2", raw, packed)
    assert Image.of(raw) == Image(raw, "raw", filesystem)  # type: ignore[arg-type]
    assert Image.of(packed) == Image(packed, "qcow2", filesystem)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no file system"),
        (b"\0" * 5000, "holds no file system"),
        (b"QFI\xfb" + b"x" * 5000, "is no whole qcow2 image"),
    ],
    ids=["empty", "zeros", "damaged"],
)
def test_what_is_no_image(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "image"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=f"{file} {words}"):
        data_of(file, None, None)


def test_an_image_has_its_size(tmp_path: Path) -> None:
    make_ext4(tmp_path / "image", 16 << 20)
    with pytest.raises(UsageError, match="has its size and its file system already"):
        data_of(tmp_path / "image", 1 << 30, None)


def test_a_directory_that_does_not_fit(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "file").write_bytes(os.urandom(15 << 20))
    for size in (8 << 20, 16 << 20):
        with pytest.raises(UsageError, match=f"{directory} .*does not fit onto a disk of {size >> 20} MiB"):
            make_ext4(tmp_path / "image", size, directory)


def test_many_small_files_fit(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    for number in range(3000):
        (directory / str(number)).touch()
    make_ext4(tmp_path / "image", 64 << 20, directory)
    argv = [str(Path(tool("mke2fs")).with_name("debugfs")), "-R", "ls -p /", str(tmp_path / "image")]
    listed = subprocess.run(argv, capture_output=True, check=True, text=True).stdout.splitlines()
    assert {str(number) for number in range(3000)} <= {line.split("/")[5] for line in listed if line}


def test_a_disk_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    make_ext4(tmp_path / "raw", 16 << 20)
    disk, image = Disk(tmp_path / "raw", "raw"), tmp_path / "image"
    keep(disk, image, False)
    content = image.read_bytes()
    assert image.stat().st_mode & 0o777 == 0o644
    with pytest.raises(UsageError, match="exists by now"):
        keep(disk, image, False)
    assert image.read_bytes() == content
    image.write_text("something else")
    keep(disk, image, True)
    qemu_img("compare", disk.path, image)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image", "raw"]

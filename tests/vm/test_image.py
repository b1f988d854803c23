# SPDX-License-Identifier: GPL-2.0-only
import os
import subprocess
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.errors import BuildError, LabError
from foliolab.files import GUEST
from foliolab.vm import image
from foliolab.vm.image import Entry, guest_programs, initramfs, newc, program_sources


def listed(archive: bytes) -> list[str]:
    """What cpio says is in an archive: mode and name, and the numbers of a device."""
    done = subprocess.run(["cpio", "--list", "--verbose", "--quiet"], input=archive, capture_output=True, check=True)
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    return [" ".join([words[0], *(words[4:6] if words[0][0] == "c" else []), words[-1]]) for words in lines]


def unpacked(archive: bytes, directory: Path) -> None:
    argv = ["cpio", "--extract", "--make-directories", "--quiet", "--nonmatching", "dev/console"]
    subprocess.run(argv, input=archive, cwd=directory, capture_output=True, check=True)


def test_newc_is_what_cpio_reads() -> None:
    archive = newc(
        [
            Entry("dev", 0o040755),
            Entry("dev/console", 0o020600, device=(5, 1)),
            Entry("odd", 0o100644, b"x"),  # content and name that need padding
            Entry("empty", 0o100755),
        ]
    )
    assert listed(archive) == ["drwxr-xr-x dev", "crw------- 5, 1 dev/console", "-rw-r--r-- odd", "-rwxr-xr-x empty"]


def test_initramfs_holds_programs_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    program, text = tmp_path / "program", tmp_path / "text"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    text.write_text("hello")
    archive = initramfs({"init": program, "probe": program}, {"/root/deep/text": text})
    unpacked(archive.read_bytes(), tmp_path)
    assert (tmp_path / "root/deep/text").read_text() == "hello"
    assert not os.access(tmp_path / "root/deep/text", os.X_OK)
    assert os.access(tmp_path / "init", os.X_OK)
    assert os.access(tmp_path / "bin/probe", os.X_OK)
    assert initramfs({"init": program, "probe": program}, {"root/deep/text": text}) == archive
    text.write_text("other")
    assert initramfs({"init": program, "probe": program}, {"/root/deep/text": text}) != archive


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="/nothing/here cannot be put into the guest: No such file"):
        initramfs({}, {"/x": Path("/nothing/here")})


def test_programs_are_compiled_once_and_again_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image, "GUEST", tmp_path)
    (tmp_path / "common.h").write_text("#define STATUS 3\n")
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers/three.c").write_text('#include "common.h"\nint main(void) { return STATUS; }\n')
    first = guest_programs(NATIVE)
    made = first["three"].stat().st_mtime_ns
    assert subprocess.run([first["three"]], check=False).returncode == 3
    assert guest_programs(NATIVE) == first
    assert first["three"].stat().st_mtime_ns == made
    (tmp_path / "common.h").write_text("#define STATUS 4\n")
    assert subprocess.run([guest_programs(NATIVE)["three"]], check=False).returncode == 4


def test_no_two_programs_have_one_name() -> None:
    names = sorted(path.stem for path in GUEST.glob("*/*.c") if path.parent.name != "stores")
    assert names == sorted(program_sources())
    assert "init" in names


def test_a_program_that_does_not_compile_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image, "GUEST", tmp_path)
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers/bad.c").write_text("int main(void) { return nothing; }\n")
    with pytest.raises(BuildError, match=r"bad\.c"):
        guest_programs(NATIVE)
    with pytest.raises(BuildError, match=r"bad\.c"):
        guest_programs(NATIVE)

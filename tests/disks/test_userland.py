# SPDX-License-Identifier: GPL-2.0-only
"""Disks of programs: what lies on them, and real ones in guests."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foliolab.apt import Package, fetch
from foliolab.arch import X86_64
from foliolab.disks import userland
from foliolab.disks.userland import SELECTIONS, Selection, Userland
from foliolab.errors import LabError
from foliolab.experiment.spec import ROOTS
from foliolab.files import GUEST
from foliolab.kernel.source import Source
from foliolab.vm.accel import Accelerator
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from tests.debian import Mirror
from tests.machines import ARM64_4K
from tests.vm.conftest import guest_config


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    made = Mirror(tmp_path / "mirror")
    made.add("old", "1", "amd64", file="lib/x86_64-linux-gnu/libold.so")
    made.add("new", "1", "amd64", "Depends: old", file="usr/lib/x86_64-linux-gnu/libnew.so", content=bytes(100_000))
    monkeypatch.setenv("APT_CONFIG", str(made.configuration))
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "the cache"))
    return made


@pytest.fixture
def small(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Userland:
    """Two packages, a source of a few files, and no guest to settle it."""
    monkeypatch.setattr(userland, "written_by_guest", lambda *_: None)
    tree = tmp_path / "source"
    for name in ("tools/include/a.h", "tools/arch/x86/include/b.h", "tools/lib/c.c", "kernel/d.c"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    return Userland(X86_64, fetch(X86_64, ["new"]), Source(tree, "6.12.1", "identity"))


@pytest.fixture
def nobody(tmp_path: Path) -> GuestConfig:
    """For a guest that is not to be booted."""
    return GuestConfig(X86_64, tmp_path / "none", tmp_path / "none", Accelerator("test", (), patience=1))


def look(disk: Path, *commands: str) -> str:
    argv = ["xfs_db", "-r", *(word for command in commands for word in ("-c", command)), str(disk)]
    return subprocess.run(argv, capture_output=True, check=True, text=True).stdout


def listed(disk: Path, directory: str) -> dict[str, str]:
    """Name -> kind of what is in a directory."""
    lines = [line.split() for line in look(disk, f"ls {directory}").splitlines()]
    return {words[5]: words[2] for words in lines if len(words) > 5 and words[5] not in (".", "..")}


def test_a_disk_has_the_packages_the_work_and_the_project(small: Userland, nobody: GuestConfig) -> None:
    disk = small.prepare(nobody)
    assert (disk.path, disk.format) == (small.path, "raw")
    assert sorted(path.suffix for path in small.path.parent.iterdir()) == [".img", ".lock"]
    subprocess.run(["xfs_repair", "-n", "-f", str(disk.path)], capture_output=True, check=True)
    root = listed(disk.path, "/")
    assert root == {
        **dict.fromkeys(("bin", "lib", "lib64", "sbin"), "symlink"),
        **dict.fromkeys(("dev", "proc", "src", "tmp", "usr"), "directory"),
    }
    # The old package believes that /lib is a directory of its own.
    assert listed(disk.path, "/usr/lib/x86_64-linux-gnu") == {"libold.so": "regular", "libnew.so": "regular"}
    work = {path.name for path in (GUEST / "text/real-text").iterdir() if path.is_file()}
    assert set(listed(disk.path, "/src")) == {*work, "linux"}
    assert listed(disk.path, "/src/linux/tools") == dict.fromkeys(("arch", "include", "lib"), "directory")
    assert "fragmentation factor 0.00%" in look(disk.path, "frag -f")
    # Nothing is stored for what is empty.
    assert disk.path.stat().st_blocks * 512 < 80 << 20


def test_a_disk_is_made_once(small: Userland, nobody: GuestConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    before = small.prepare(nobody).path.stat()
    monkeypatch.setattr(userland, "_make_filesystem", None)
    assert small.prepare(nobody).path.stat() == before


def test_a_disk_that_cannot_be_made_leaves_nothing(
    small: Userland, nobody: GuestConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise LabError("The guest is unwell.")

    monkeypatch.setattr(userland, "written_by_guest", broken)
    with pytest.raises(LabError, match="unwell"):
        small.prepare(nobody)
    assert [path.suffix for path in small.path.parent.iterdir()] == [".lock"]


def test_another_package_source_or_work_makes_another_disk(small: Userland, tmp_path: Path) -> None:
    package = small.packages[0]
    others = [
        replace(small, packages=small.packages[1:]),
        replace(small, packages=(Package(package.file, "0" * 64), *small.packages[1:])),
        replace(small, packages=(Package(package.file.with_name("other.deb"), package.hash), *small.packages[1:])),
        replace(small, source=replace(small.source, identity="other")),
    ]
    hashes = {small.hash, *(other.hash for other in others)}
    assert len(hashes) == 5
    work = tmp_path / "work"
    shutil.copytree(GUEST / "text/real-text", work)
    (work / "__pycache__").mkdir(exist_ok=True)  # as Python leaves it
    elsewhere = replace(small, selection=replace(small.selection, work=(work,)))
    assert elsewhere.hash == small.hash
    (work / "program.py").write_text("pass\n")
    assert elsewhere.hash not in hashes


def test_a_disk_with_databases_has_the_work_of_both(
    mirror: Mirror, small: Userland, nobody: GuestConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[list[tuple[str, ...]]] = []
    monkeypatch.setattr(userland, "written_by_guest", lambda config, jobs, *_: done.append(jobs))
    programs = replace(small, selection=SELECTIONS["programs"])
    assert programs.hash != small.hash
    disk = programs.prepare(nobody)
    files = {"Makefile", "program.py", "databases.py", "no-hint.c", "prepare.mk"}
    assert set(listed(disk.path, "/src")) == {*files, "linux"}
    assert [[command[0] for command in commands] for commands in done] == [[":mount", "real-text", "program-workload"]]


def test_every_root_directory_that_an_experiment_can_name_is_known() -> None:
    assert set(SELECTIONS) == ROOTS


def test_a_selection_can_be_of_another_release(mirror: Mirror) -> None:
    """Which this mirror does not have."""
    selection = Selection(("new",), (), (), suite="newer")
    with pytest.raises(LabError, match="apt cannot fetch new for x86_64 from newer"):
        Userland.selected(X86_64, selection)


def test_a_name_that_no_listing_can_hold(mirror: Mirror, small: Userland, nobody: GuestConfig) -> None:
    mirror.add("odd", "1", "amd64", file="usr/share/two words")
    odd = replace(small, packages=fetch(X86_64, ["odd"]))
    with pytest.raises(LabError, match="'usr/share/two words' has a blank in its name"):
        odd.prepare(nobody)


@pytest.fixture(scope="module")
def python_results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Python in one guest: in fresh memory, in fragmented, and again; and the guest's settings before and after."""
    machine = ARM64_4K
    programs = guest_programs(machine.arch)
    config = guest_config(machine.kernel(), programs)
    disk = Userland.selected(machine.arch, SELECTIONS["userland"]).prepare(config)
    console = tmp_path_factory.mktemp("python") / "console.log"
    results = []
    with Guest(replace(config, memory_mib=512, disks=(disk,), initramfs=initramfs(programs)), console) as guest:
        guest.run([":mount", "/dev/vda", "/data", "xfs", "ro"]).checked()
        settings = _settings(guest)
        for memory in ("fresh", "fragmented", "fresh"):
            argv = ["real-text", "--root", "/data", "--program", "python", "--drop-caches", "--floor", "/tmp/floor"]
            results.append(json.loads(guest.run([*argv, "--memory", memory]).checked().stdout))
        assert _settings(guest) == settings
    return results


def _settings(guest: Guest) -> list[bytes]:
    files = [
        "/sys/block/vda/queue/read_ahead_kb",
        "/proc/sys/vm/min_free_kbytes",
        "/proc/sys/vm/compact_unevictable_allowed",
        "/proc/sys/vm/compaction_proactiveness",
    ]
    return [guest.run([":read", file]).checked().stdout for file in files]


@pytest.mark.boot
def test_python_reads_the_same_each_time_and_no_less_than_it_needs(python_results: list[dict[str, Any]]) -> None:
    first, _, again = python_results
    # Not to the byte: where memory has no folio of the size asked for, less or more is read around. Memory
    # that was in pieces need not all be put together again.
    assert again["read_bytes"] == pytest.approx(first["read_bytes"], rel=0.1)
    assert first["floor_bytes"] == again["floor_bytes"]
    assert 4 << 20 < first["floor_bytes"] < first["read_bytes"] < 40 << 20
    assert 0 < first["major_faults"] < first["read_requests"]
    assert 4 << 20 < first["mapped_bytes"] < first["cached_bytes"] < first["peak_memory_bytes"] < 200 << 20


@pytest.mark.boot
def test_on_arm64_python_has_its_text_in_contpte_blocks(python_results: list[dict[str, Any]]) -> None:
    """As the patched kernel boots."""
    first, _, again = python_results
    for result in (first, again):
        assert result["contpte_share"] > 0.7
        assert result["file_cont_aligned_64kb"] >= result["file_thp_aligned_64kb"] > 0.7
        assert result["tlb_entries"] < result["tlb_entries_uncoalesced"] / 2
        assert result["file_alloc"] > 0


@pytest.mark.boot
def test_memory_can_be_broken_up_and_put_together_again(python_results: list[dict[str, Any]]) -> None:
    first, fragmented, again = python_results
    assert first["free_in_large_blocks"] > 0.9
    assert fragmented["free_in_large_blocks"] < 0.1
    assert again["free_in_large_blocks"] > 0.8


@pytest.mark.boot
def test_a_database_reads_again_what_a_small_group_has_lost(tmp_path: Path) -> None:
    arch = ARM64_4K.arch
    config = guest_config(ARM64_4K.kernel(), guest_programs(arch))
    disk = Userland.selected(arch, SELECTIONS["programs"]).prepare(config)
    argv = ["program-workload", "--root", "/data", "--workload", "sqlite", "--memory"]
    with Guest(replace(config, memory_mib=512, disks=(disk,)), tmp_path / "console.log") as guest:
        guest.run([":mount", "/dev/vda", "/data", "xfs", "ro"]).checked()
        small = json.loads(guest.run([*argv, "48M"], 120).checked().stdout)
        large = json.loads(guest.run([*argv, "256M"], 120).checked().stdout)
    assert large["refaults_file"] == 0
    assert 96 << 20 < large["read_bytes"] < 160 << 20
    assert small["refaults_file"] > 10_000
    assert small["read_bytes"] > 2 * large["read_bytes"]
    assert small["peak_memory_bytes"] <= 48 << 20 < large["peak_memory_bytes"]

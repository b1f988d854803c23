# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.arch import X86_64, Architecture
from foliolab.campaign import qemu_backend
from foliolab.campaign.qemu_backend import QemuBackend
from foliolab.disks.stores import StoreDisk
from foliolab.disks.userland import SELECTIONS, Selection
from foliolab.errors import MissingTool, UsageError
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import make_plan
from foliolab.experiment.spec import Experiment
from foliolab.vm import image
from foliolab.vm.accel import Accelerator


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of guest programs: sparse-mmap includes one header, and that another."""
    monkeypatch.setattr(image, "GUEST", tmp_path)
    for name in ("windows", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "windows/sparse-mmap.c").write_text('#include <stdio.h>\n#include "one.h"\n')
    (tmp_path / "one.h").write_text('#include "two.h"\n')
    (tmp_path / "two.h").write_text("int two;\n")
    (tmp_path / "other.h").write_text("int other;\n")
    return tmp_path


def workload_hash(name: str = "sparse-mmap") -> str:
    experiment: Experiment = find_experiment(name)
    return QemuBackend(X86_64, Accelerator("test", (), patience=1)).workload_hash(experiment)


def test_only_what_a_program_includes_makes_it_another(guest: Path) -> None:
    before = workload_hash()
    (guest / "other.h").write_text("int changed;\n")
    assert workload_hash() == before
    (guest / "two.h").write_text("int changed;\n")
    assert workload_hash() != before


def test_the_directory_that_a_program_lies_in_does_not_matter(guest: Path) -> None:
    before = workload_hash()
    (guest / "windows/sparse-mmap.c").rename(guest / "elsewhere/sparse-mmap.c")
    assert workload_hash() == before
    (guest / "two.h").rename(guest / "three.h")
    (guest / "one.h").write_text('#include "three.h"\n')
    assert workload_hash() != before


def test_a_program_without_a_source_is_named(guest: Path) -> None:
    (guest / "windows/sparse-mmap.c").unlink()
    with pytest.raises(UsageError, match=r"sparse-mmap runs 'sparse-mmap', which is no program of guest/\."):
        workload_hash()


@pytest.mark.parametrize(
    ("experiment", "content"),
    [("real-text", "userland"), ("program-workloads", "programs"), ("strided-reclaim", "programs")],
)
def test_programs_from_packages_are_a_part_of_the_workload(
    guest: Path, monkeypatch: pytest.MonkeyPatch, experiment: str, content: str
) -> None:
    """Whether they are on the only disk or on a second one."""

    class Fake:
        hash = "one"

        @classmethod
        def selected(cls, arch: Architecture, selection: Selection) -> "Fake":
            assert selection is SELECTIONS[content]
            return cls()

    for name in ("real-text", "program-workload"):
        (guest / f"elsewhere/{name}.c").write_text("int main;\n")
    monkeypatch.setattr(qemu_backend, "Userland", Fake)
    before = workload_hash(experiment)
    assert workload_hash(experiment) == before
    monkeypatch.setattr(Fake, "hash", "other")
    assert workload_hash(experiment) != before


def test_a_store_whose_tools_are_missing_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_maven(arch: Architecture, name: str) -> StoreDisk:
        if name == "lucene":
            raise MissingTool("'mvn' is not installed.")
        return StoreDisk(arch, name, {})

    monkeypatch.setattr("foliolab.disks.stores.store_disk", without_maven)
    experiment = find_experiment("stores")
    plan = make_plan(experiment, experiment.scale("quick"))
    backend = QemuBackend(X86_64, Accelerator("test", (), patience=1))
    obstacles = {step.cell.as_dict()["store"]: backend.obstacle(plan, step) for step in plan.steps}
    assert obstacles.pop("lucene") == "'mvn' is not installed."
    assert set(obstacles) == {"lmdb", "mdbx", "bbolt", "sqlite", "git"}
    assert set(obstacles.values()) == {""}
    hashes = {step.cell.as_dict()["store"]: backend.data_hash(plan, step.cell) for step in plan.steps}
    assert [name for name, found in hashes.items() if not found] == ["lucene"]

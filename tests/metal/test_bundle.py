# SPDX-License-Identifier: GPL-2.0-only
"""What goes into a bundle."""

import json
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from foliolab.arch import NATIVE
from foliolab.campaign.host_backend import HostBackend
from foliolab.campaign.measure import Request, prepared
from foliolab.cli.main import command_line, main
from foliolab.cli.measure import request_of
from foliolab.errors import UsageError
from foliolab.metal.bundle import pack
from foliolab.vm.counted import READ_COUNTS, counting
from tests.metal.answered import bundled, jobs_in
from tests.small import small_experiment

ON_X86 = pytest.mark.skipif(NATIVE.name != "x86_64", reason="there are kernels for machines of x86_64 only")


def test_a_bundle_says_what_a_machine_takes(boot: Path) -> None:
    place = boot.parents[2]
    plan = (place / "run/plan").read_text().split("\n")
    assert plan[0] == f"machine {NATIVE.name}"
    _, number, disk, size = plan[2].split()
    assert (number, size) == ("0", str((boot.parents[3] / "disk.img").stat().st_size))
    kernel, *words = (boot / "kernel").read_text().split()
    assert words == ["mem=256M", "nr_cpus=2"]
    assert {kernel, disk} < {file.name for file in (place / "files").iterdir()}
    first = json.loads((boot / "jobs").read_text().splitlines()[0])
    assert first["argv"] == [":mount", "/dev/@disk0@", "/data", "ext4", "ro"]


def test_a_packed_bundle_is_roots_and_nobody_else_can_write_to_it(
    boot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_somebody(*asked: Any) -> tarfile.TarInfo:
        info = found(*asked)
        info.uid = info.gid = 1000
        info.uname = info.gname = "somebody"
        return info

    found = tarfile.TarFile.gettarinfo
    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", of_somebody)
    place = boot.parents[2]
    for path in (place, *place.rglob("*")):
        path.chmod(0o2777 if path.is_dir() else 0o6766)
    pack(place, tmp_path / "bundle.tar.gz")
    with tarfile.open(tmp_path / "bundle.tar.gz") as stream:
        members = stream.getmembers()
    assert {member.name for member in members} == {
        str(Path("metal") / path.relative_to(place)) for path in (place, *place.rglob("*"))
    }
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "root", "root")}
    modes = {(member.isdir(), stat.S_IMODE(member.mode)) for member in members}
    assert modes == {(True, 0o755), (False, 0o744)}


def test_jobs_count_hardware_where_the_experiment_asks_for_it(
    boot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "counted").mkdir()
    counted = bundled(tmp_path / "counted", "hardware_counters = true\n")
    plain = [(step, argv) for _, step, argv in jobs_in(boot)]
    for step in (1, 2, 3):
        *settings, program = [argv for its, argv in plain if its == step]
        assert program[0] == "sparse-mmap"
        asked = [argv for _, its, argv in jobs_in(counted) if its == step]
        assert asked == [*settings, counting(program), list(READ_COUNTS)]
    # Each job has a number, by which its answer is known, and whose program is what messages name.
    works = json.loads((counted / "works.json").read_text())["works"]
    named = {int(number): argv for work in works for number, argv in work["jobs"].items()}
    jobs = {number: argv for number, step, argv in jobs_in(counted) if step}
    assert named.keys() == jobs.keys()
    assert all(argv[-len(named[number]) :] == named[number] for number, argv in jobs.items())
    assert {argv[0] for argv in named.values() if not argv[0].startswith(":")} == {"sparse-mmap"}


@pytest.mark.parametrize(("parameters", "found"), [("", 0), ("writable = true\n", 1)])
def test_a_plan_says_whether_disks_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parameters: str, found: int
) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    boot = bundled(tmp_path, parameters)
    assert (boot.parents[2] / "run/plan").read_text().splitlines().count("disks anew") == found
    mount = next(argv for _, _, argv in jobs_in(boot) if argv[0] == ":mount")
    assert ("ro" in mount) is not bool(found)


@ON_X86
def test_the_command_has_jobs_count_hardware(tmp_path: Path) -> None:
    words = ["bundle", str(small_experiment(tmp_path)), "-o", str(tmp_path / "bundle.tar.gz")]
    for more in ([], ["--hardware-counters"]):
        plan, backend, _ = prepared(request_of(command_line().parse_args([*words, *more]), "host"))
        assert isinstance(backend, HostBackend)
        assert plan.scale.parameters.hardware_counters is bool(more)


@pytest.mark.parametrize("output", [".", "/", "no-such/bundle.tar.gz"])
def test_a_bundle_that_can_be_no_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    monkeypatch.chdir(tmp_path)
    assert main(["bundle", str(small_experiment(tmp_path)), "-o", output]) == UsageError.status
    assert f"{output} can be no file." in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


@ON_X86
def test_kernels_of_another_profile_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    experiment = str(small_experiment(tmp_path))
    for argv in (["measure", experiment, "--host", "bench1"], ["bundle", experiment, "-o", str(tmp_path / "bundle")]):
        assert main([*argv, "--profile", "lab"]) == UsageError.status
        assert "Kernels of the profile lab have no drivers for a machine's disks." in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()


@ON_X86
def test_a_machine_counts_hardware_and_has_no_nodes(tmp_path: Path) -> None:
    file = small_experiment(tmp_path)
    request = Request(str(file), profile="metal", backend="host", hardware_counters=True)
    plan, backend, _ = prepared(request)
    assert plan.scale.parameters.hardware_counters
    assert isinstance(backend, HostBackend)
    file.write_text(file.read_text().replace("cpus = 2\n", 'cpus = 2\nnodes = [{ cpus = 2, memory = "256M" }]\n'))
    with pytest.raises(UsageError, match=r"^small wants nodes of memory, which only guests have so far\.$"):
        prepared(request)

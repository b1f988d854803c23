# SPDX-License-Identifier: GPL-2.0-only
"""Whole campaigns on real kernels, with a file small enough for seconds."""

import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from foliolab.arch import NATIVE
from foliolab.campaign.qemu_backend import QemuBackend
from foliolab.campaign.runner import Kernels, failure_of, run_plan
from foliolab.campaign.sample import Sample
from foliolab.campaign.store import open_store
from foliolab.errors import GuestCrashed, GuestHung, NoResult
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import Plan, make_plan
from foliolab.experiment.spec import Experiment, Parameters
from foliolab.experiment.variants import choose, load_variants, on_kernels
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.accel import Wanted
from foliolab.vm.accel import choose as choose_accelerator
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from tests.machines import Machine
from tests.small import small_experiment

pytestmark = pytest.mark.boot


class AnyProgram(QemuBackend):
    """Runs init's verbs too, which have no source of their own."""

    def workload_hash(self, experiment: Experiment) -> str:
        return "any"


@pytest.fixture
def small(tmp_path: Path) -> Experiment:
    return find_experiment(str(small_experiment(tmp_path)))


def run(place: Path, plan: Plan, *kernels: BuiltKernel, accelerator: Wanted = "auto") -> list[Sample]:
    arch = kernels[0].arch
    chosen = choose_accelerator(arch, accelerator)
    backend = AnyProgram(arch, chosen)
    by_name = {kernel.name: kernel for kernel in kernels}
    with open_store(place / "samples.jsonl") as store:
        return run_plan(
            plan.with_at_most(chosen.max_cpus), store, backend, Kernels(by_name.__getitem__, by_name.__getitem__)
        )


def plan_of(experiment: Experiment, variants: str) -> Plan:
    return make_plan(experiment, experiment.scale("quick"), variants=choose(variants.split(","), load_variants()))


def test_off_equals_the_stock_kernel(
    small: Experiment, tmp_path: Path, patched_kernel: BuiltKernel, stock_kernel: BuiltKernel
) -> None:
    off, stock = choose(["off"], load_variants()), on_kernels([], [stock_kernel.name], asked=False)
    plan = make_plan(small, small.scale("quick"), variants=off + stock)
    samples = run(tmp_path, plan, patched_kernel, stock_kernel)
    assert failure_of(samples) is None
    found = {(sample.variant, sample.cell["pattern"]): sample.metrics for sample in samples}
    for pattern in ("random", "stride", "sequential"):
        ours, debians = found["off", pattern], found[stock_kernel.name, pattern]
        assert ours["read_bytes"] == debians["read_bytes"]
        assert ours["major_faults"] == debians["major_faults"]
    assert len({sample.boot for sample in samples}) == 2
    assert {f"{sample.boot}.log" for sample in samples} == {file.name for file in (tmp_path / "consoles").iterdir()}


def test_published_reads_less(small: Experiment, tmp_path: Path, machine: Machine) -> None:
    samples = run(tmp_path, plan_of(small, "off,published"), machine.kernel())
    assert failure_of(samples) is None
    found = {(sample.variant, sample.cell["pattern"]): sample.metrics for sample in samples}
    assert all(metrics["floor_bytes"] <= metrics["read_bytes"] for metrics in found.values())
    random_ratio = found["published", "random"]["read_bytes"] / found["off", "random"]["read_bytes"]
    # A small file has few pages of 64 KiB: fewer touches than the misses that it takes to stop reading around.
    assert random_ratio < 0.5 if machine.page_size == 4096 else random_ratio == 1
    assert {(sample.arch, sample.page_size) for sample in samples} == {(machine.arch.name, machine.page_size)}


@pytest.mark.debug
def test_the_debug_kernel_has_nothing_to_complain_about(
    small: Experiment, tmp_path: Path, debug_kernel: BuiltKernel
) -> None:
    """A report of KASAN, lockdep or DEBUG_VM during a cell would make it a guest-crash."""
    samples = run(tmp_path, plan_of(small, "published,adaptive"), debug_kernel)
    assert [sample.outcome for sample in samples] == ["ok"] * 6
    assert {sample.profile for sample in samples} == {"debug"}


_COUNTED = """
accelerator = "icount"
cpus = 1
read_ahead_kb = 128
watermark_scale_factor = 10
deadline_seconds = 60
[scales.quick]
factor = 1
memory = "256M"
file = "16M"
work = "32M"
"""
MPROTECT = """
question = "What does it cost?"
metric = "instructions_per_pte"
repetitions = 2
variants = ["off"]
cells = [{ case = ["T3", "swap"] }]
[workload]
argv = ["mprotect", "--bytes", "{work_bytes}", "--rounds", "{rounds}", "--swap", "{data}"]
[parameters]
filesystem = "ext4"
writable = true
"""


def test_instructions_for_each_entry_repeat_to_a_thousandth(tmp_path: Path, patched_kernel: BuiltKernel) -> None:
    file = tmp_path / "little.toml"
    file.write_text(f"{MPROTECT}{_COUNTED}rounds = 2\n")
    samples = run(tmp_path, plan_of(find_experiment(str(file)), "off"), patched_kernel, accelerator="icount")
    assert failure_of(samples) is None
    for case in ("T3", "swap"):  # which writes to the disk
        first, second = (sample.metrics for sample in samples if sample.cell["case"] == case)
        assert 50 < first["instructions_per_pte"] < 300
        assert first["instructions_per_pte"] == pytest.approx(second["instructions_per_pte"], rel=0.001)
        assert first["ptes_visited"] == 2 * 2 * (32 << 20) // 4096


WORKLOADS = """
question = "What does it cost?"
metric = "instructions_per_unit"
repetitions = 2
variants = ["off"]
cells = [{ workload = ["mmap-random-fits", "mmap-sequential", "anon-swap"] }]
[workload]
argv = ["workload", "--memory", "{work_bytes}", "--seed", "1", "--drop-caches"]
[parameters]
filesystem = "ext4"
"""


def test_workloads_are_held_to_their_memory_and_repeat(tmp_path: Path, patched_kernel: BuiltKernel) -> None:
    file = tmp_path / "little.toml"
    file.write_text(WORKLOADS + _COUNTED)
    samples = run(tmp_path, plan_of(find_experiment(str(file)), "off"), patched_kernel, accelerator="icount")
    assert failure_of(samples) is None
    assert {(sample.backend, sample.parameters["cpus"]) for sample in samples} == {("qemu-icount", 1)}
    found = {}
    # Reclaim depends a little on how busy the host is.
    tolerances = {"mmap-random-fits": 0.01, "mmap-sequential": 0.03, "anon-swap": 0.05}
    for name, tolerance in tolerances.items():
        found[name], again = (sample.metrics for sample in samples if sample.cell["workload"] == name)
        assert found[name]["instructions_per_unit"] == pytest.approx(again["instructions_per_unit"], rel=tolerance)
        assert found[name]["refaults_file"] == pytest.approx(again["refaults_file"], rel=0.001) or name == "anon-swap"
        assert 0 < found[name]["peak_memory_bytes"] <= 32 << 20
    pages = (32 << 20) // 4096
    fits, scan, swap = found.values()
    assert fits["major_faults"] == fits["refaults_file"] == fits["reclaimed_pages"] == fits["swap_ins"] == 0
    # Two passes over one and a half of the memory: nothing is there when it is used again.
    assert scan["read_bytes"] >= 2.9 * (32 << 20)
    assert scan["refaults_file"] >= 2.9 * pages
    assert swap["swap_ins"] >= pages // 20
    assert swap["swap_outs"] >= pages // 20
    assert swap["refaults_file"] < swap["refaults_anon"]


def test_what_a_boot_did_before_does_not_matter(tmp_path: Path, patched_kernel: BuiltKernel) -> None:
    """Short programs flush the TLB; random access that fits makes an emulator's grow, and hides that pages are used."""
    image = initramfs(guest_programs(NATIVE))
    counting = choose_accelerator(NATIVE, "icount")
    arguments = NATIVE.counting_boot_arguments
    config = GuestConfig(NATIVE, patched_kernel.image, image, counting, memory_mib=384, boot_arguments=arguments)
    refaults = []
    with Guest(config, tmp_path / "console.log") as guest:
        guest.run([":write", "/proc/sys/vm/watermark_scale_factor", "10"]).checked()
        guest.run([":write", "/sys/kernel/mm/mmap_readahead/adaptive", "0"]).checked()
        for before in ("fork-heavy", "mmap-random-fits"):
            for name in (before, "file-write-mix"):
                done = guest.run(["workload", "--workload", name, "--memory", "64M", "--drop-caches"]).checked()
            refaults.append(json.loads(done.stdout)["refaults_file"])
    assert refaults[0] > 1000
    assert refaults[0] == pytest.approx(refaults[1], rel=0.1)


class Fixed(Experiment):
    """An experiment whose every cell runs the same command."""

    def command(self, cell: Cell, parameters: Parameters, repetition: int, data: str) -> list[str]:
        return list(self.argv)


def with_command(experiment: Experiment, *argv: str, deadline_seconds: int = 60) -> Plan:
    fields = {field.name: getattr(experiment, field.name) for field in dataclasses.fields(experiment)}
    plan = plan_of(Fixed(**{**fields, "argv": argv}), "off")
    parameters = structs.replace(plan.scale.parameters, deadline_seconds=deadline_seconds)
    return replace(plan, scale=replace(plan.scale, parameters=parameters))


def test_a_crash_is_recorded_and_the_next_cell_has_a_guest_of_its_own(
    small: Experiment, tmp_path: Path, patched_kernel: BuiltKernel
) -> None:
    samples = run(tmp_path, with_command(small, ":write", "/proc/sysrq-trigger", "c"), patched_kernel)
    assert [sample.outcome for sample in samples] == ["guest-crash"] * 3
    assert "sysrq triggered crash" in samples[0].sentence
    assert len({sample.boot for sample in samples}) == 3
    assert isinstance(failure_of(samples), GuestCrashed)


def test_a_probe_that_fails_gives_no_result(small: Experiment, tmp_path: Path, patched_kernel: BuiltKernel) -> None:
    samples = run(tmp_path, with_command(small, "sparse-mmap", "--file", "/nowhere"), patched_kernel)
    assert {sample.outcome for sample in samples} == {"no-result"}
    assert "/nowhere" in samples[0].sentence
    assert isinstance(failure_of(samples), NoResult)


def test_a_hang_ends_at_its_deadline(small: Experiment, tmp_path: Path, patched_kernel: BuiltKernel) -> None:
    forever = ("sparse-mmap", "--file", "/data/file", "--passes", "1000000000")
    plan = with_command(small, *forever, deadline_seconds=1)
    plan = replace(plan, boots=(replace(plan.boots[0], steps=plan.boots[0].steps[:1]),))
    (sample,) = run(tmp_path, plan, patched_kernel)
    assert sample.outcome == "hang"
    assert isinstance(failure_of([sample]), GuestHung)

# SPDX-License-Identifier: GPL-2.0-only
"""A campaign on a machine: kernels that count, panic and hang, and a machine that is as before."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.campaign.host_backend import HostBackend
from foliolab.campaign.runner import Kernels, run_plan
from foliolab.campaign.sample import Sample
from foliolab.campaign.store import open_store
from foliolab.errors import LabError
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import Plan, make_plan
from foliolab.experiment.spec import Experiment, Parameters
from foliolab.experiment.variants import choose, load_variants
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.metal.machine import HOME, OnMachine, RemoteMachine
from tests.machines import ALL_KERNELS
from tests.metal.stand_in import StandIn, stand_in
from tests.small import small_experiment

pytestmark = [
    pytest.mark.boot,
    pytest.mark.skipif(
        not ALL_KERNELS, reason="starts a machine of its own in emulation, for minutes: FOLIOLAB_KERNELS=all"
    ),
]

CRASH = [":write", "/proc/sysrq-trigger", "c"]
_SPIN = "chrt -f 99 sh -c 'while :; do :; done' &"
HANG = ["sh", "-c", f"echo -1 >/proc/sys/kernel/sched_rt_runtime_us; {_SPIN} {_SPIN} wait"]
"""Nothing else gets a processor then, not even the first process."""
MADE = "/data /programs /etc/systemd/system/foliolab-metal.service /boot/grub/custom.cfg /boot/grub/*.kernel"


class AnyProgram(HostBackend):
    """Runs others than those of guest/, which have no source of their own."""

    def workload_hash(self, experiment: Experiment) -> str:
        return "any"


@dataclass(frozen=True)
class Fatal(Experiment):
    """One that runs something else at some patterns."""

    commands: Mapping[str, list[str]] = dataclasses.field(default_factory=dict)

    def command(self, cell: Cell, parameters: Parameters, repetition: int, data: str) -> list[str]:
        other = self.commands.get(str(cell.as_dict()["pattern"]))
        return other or super().command(cell, parameters, repetition, data)


def plan_with(place: Path, commands: Mapping[str, list[str]]) -> Plan:
    """One boot, in which these patterns come first."""
    experiment = find_experiment(str(small_experiment(place)))
    fields = {field.name: getattr(experiment, field.name) for field in dataclasses.fields(experiment)}
    fatal = Fatal(**fields, commands=commands)
    plan = make_plan(fatal, fatal.scale("quick"), variants=choose(["off"], load_variants()))
    (boot,) = plan.boots
    steps = sorted(boot.steps, key=lambda step: step.cell.as_dict()["pattern"] not in commands)
    return replace(plan, boots=(replace(boot, steps=tuple(steps)),))


def measured(place: Path, plan: Plan, kernel: BuiltKernel, options: tuple[str, ...], machine: StandIn) -> list[Sample]:
    backend = AnyProgram(NATIVE)
    remote = RemoteMachine("stand-in", tuple(machine.ssh.split()), options)
    with open_store(place / "samples.jsonl") as store:
        return run_plan(plan, store, backend, Kernels(lambda name: kernel, lambda name: kernel), OnMachine(remote))


@pytest.fixture
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> StandIn:
    try:
        return stand_in(tmp_path, efi=getattr(request, "param", False))
    except LabError as error:
        pytest.skip(f"no stand-in can be made here: {error}")


def test_a_panic_is_a_result_and_the_machine_goes_on(
    machine: StandIn, tmp_path: Path, patched_kernel: BuiltKernel
) -> None:
    plan = plan_with(tmp_path, {"random": CRASH})
    with machine.switched_on():
        samples = measured(tmp_path, plan, patched_kernel, ("--spare", "/dev/vdb", "--pause", "0"), machine)
        assert machine.run(f"uname -r; ls -d {MADE} 2>/dev/null || true").split() == [machine.release]
    lost, *others = samples
    assert lost.outcome == "hang"  # this kernel keeps no last words
    assert lost.sentence == "The machine was reset without a word: its kernel hung, or nothing kept its last words."
    assert [sample.outcome for sample in others] == ["ok", "ok"]
    assert {(sample.backend, sample.host) for sample in samples} == {("host", "stand-in")}
    assert len({sample.boot for sample in samples}) == 2
    assert all(sample.metrics["read_bytes"] >= sample.metrics["floor_bytes"] > 0 for sample in others)


def test_grub_starts_kernels_for_one_boot_each(machine: StandIn, tmp_path: Path, patched_kernel: BuiltKernel) -> None:
    plan = plan_with(tmp_path, {"random": CRASH})
    with machine.switched_on():
        machine.run("update-grub && sysctl -q kernel.kexec_load_disabled=1")
        samples = measured(tmp_path, plan, patched_kernel, ("--spare", "/dev/vdb", "--pause", "0"), machine)
        words = machine.run(f"uname -r; ls -d {MADE} 2>/dev/null || true; grub-editenv - list").split()
        assert words == [machine.release]
        assert "kexec=no" in machine.run("cat /var/lib/foliolab/metal/run/options").split()
    lost, *others = samples
    assert lost.outcome == "hang"
    assert [sample.outcome for sample in others] == ["ok", "ok"]
    assert len({sample.boot for sample in samples}) == 2


@pytest.mark.parametrize("machine", [True], indirect=True, ids=["efi"])
def test_systemd_boot_starts_kernels_for_one_boot_each(machine: StandIn, tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, "patched", "metal"))
    plan = plan_with(tmp_path, {"random": CRASH})
    with machine.switched_on():
        machine.run("mkdir /efi && echo '/dev/vdc1 /efi vfat' >>/etc/fstab && mount /efi")
        samples = measured(tmp_path, plan, kernel, ("--no-kexec", "--spare", "/dev/vdb", "--pause", "0"), machine)
        assert machine.run(f"uname -r; ls -d {MADE} 2>/dev/null || true").split() == [machine.release]
        assert machine.run("ls /efi /efi/loader/entries").split() == [
            *("/efi:", "EFI", "initrd.img", "loader", "vmlinuz"),
            *("/efi/loader/entries:", "debian.conf"),
        ]
        # What was to be started once is forgotten.
        machine.run(f"cd {HOME} && rm run/ended && bootctl set-oneshot foliolab-metal.conf && sh runner stop")
        assert "LoaderEntryOneShot" not in machine.run("ls /sys/firmware/efi/efivars")
    crashed, *others = samples
    assert crashed.outcome == "guest-crash"
    assert [sample.outcome for sample in others] == ["ok", "ok"]
    assert len({sample.boot for sample in samples}) == 2


def test_a_kernel_for_machines_keeps_its_last_words_and_has_a_watchdog(machine: StandIn, tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, "patched", "metal"))
    plan = plan_with(tmp_path, {"random": CRASH, "sequential": HANG})
    with machine.switched_on():
        samples = measured(tmp_path, plan, kernel, ("--pause", "0"), machine)
        assert machine.run(f"uname -r; ls -d {MADE} 2>/dev/null || true").split() == [machine.release]
    found = {str(sample.cell["pattern"]): sample for sample in samples}
    assert {name: sample.outcome for name, sample in found.items()} == {
        "random": "guest-crash",
        "sequential": "hang",
        "stride": "ok",
    }
    assert "sysrq triggered crash" in found["random"].sentence
    assert len({sample.boot for sample in samples}) == 3

# SPDX-License-Identifier: GPL-2.0-only
"""A lab that measures a small experiment on a pretended machine, with files for a kernel, a program and a disk."""

from dataclasses import dataclass, replace
from pathlib import Path

from foliolab.arch import NATIVE
from foliolab.campaign.host_backend import HostBackend, HostBootable
from foliolab.campaign.runner import Kernels, jobs_of, run_plan
from foliolab.campaign.sample import Sample
from foliolab.campaign.store import open_store
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import Plan, make_plan
from foliolab.experiment.spec import Experiment
from foliolab.experiment.variants import choose, load_variants
from foliolab.kernel.built import BuiltKernel
from foliolab.metal.bundle import make_bundle
from foliolab.metal.machine import OnMachine, RemoteMachine
from tests.small import small_experiment

BOOTS = 2


@dataclass(frozen=True)
class Anything(HostBackend):
    """A backend whose kernels are arbitrary files."""

    place: Path

    def workload_hash(self, experiment: Experiment) -> str:
        return "any"

    def prepare(self, kernel: BuiltKernel, plan: Plan) -> HostBootable:
        return HostBootable(kernel, {"init": self.place / "init"}, (self.place / "disk.img",), replace(plan, boots=()))


@dataclass(frozen=True)
class Lab:
    place: Path
    parameters: str = ""
    """More lines for those of the experiment."""

    @property
    def store(self) -> Path:
        return self.place / "samples.jsonl"

    @property
    def kernel(self) -> BuiltKernel:
        return BuiltKernel("abc", self.place / "bzImage", "patched", "metal", NATIVE, "6.12", 4096, ours=True)

    @property
    def kernels(self) -> Kernels:
        return Kernels(lambda name: self.kernel, lambda name: self.kernel)

    @property
    def plan(self) -> Plan:
        file = small_experiment(self.place)
        file.write_text(file.read_text().replace("[parameters]\n", f"[parameters]\n{self.parameters}"))
        experiment = find_experiment(str(file))
        variants = choose(["off"], load_variants())
        return make_plan(experiment, experiment.scale("quick"), variants=variants, repetitions=BOOTS)

    @property
    def backend(self) -> HostBackend:
        return Anything(NATIVE, self.place)

    def measure(self, plan: Plan | None = None) -> list[Sample]:
        machine = RemoteMachine("bench1", ("bench1",), ("--no-watchdog", "--pause", "0"))
        with open_store(self.store) as store:
            on = OnMachine(machine)
            return run_plan(plan or self.plan, store, self.backend, self.kernels, on)

    def bundle(self, place: Path) -> None:
        """Make one in an empty directory."""
        with open_store(self.store) as store:
            jobs = jobs_of(self.plan, store, self.backend, self.kernels)
        make_bundle(place, jobs)

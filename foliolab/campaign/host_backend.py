# SPDX-License-Identifier: GPL-2.0-only
"""Cells on a machine that is no guest. What boots there is made here; foliolab.metal takes it there."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from foliolab.arch import Architecture
from foliolab.campaign.job import Backend, Bootable, Session
from foliolab.campaign.qemu_backend import QemuBackend, probe_parts
from foliolab.campaign.step import jobs_of, mounts, watermarks
from foliolab.errors import UsageError
from foliolab.experiment.plan import Plan, Step
from foliolab.experiment.spec import Experiment
from foliolab.files import digest
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.accel import HOST, choose
from foliolab.vm.counted import READ_COUNTS, counting
from foliolab.vm.image import guest_programs


@dataclass(frozen=True)
class HostBackend(Backend):
    """Boots kernels on a machine. Guests of this one only make its disks.

    No step has an obstacle here: ``require_bootable`` has already refused what cannot run on a machine.
    """

    architecture: Architecture

    @property
    def name(self) -> str:
        return HOST

    def made_with(self, kernel: BuiltKernel) -> str:
        return kernel.compiler

    def workload_hash(self, experiment: Experiment) -> str:
        return digest(probe_parts(experiment, self.architecture))

    def prepare(self, kernel: BuiltKernel, plan: Plan) -> "HostBootable":
        if kernel.modules:
            raise UsageError(f"{kernel.name} needs modules to be loaded; on a machine all has to be built in.")
        guests = QemuBackend(self.architecture, choose(self.architecture))
        disks = tuple(disk.path for disk in guests.prepare(kernel, plan).config.disks)
        return HostBootable(kernel, guest_programs(self.architecture), disks, replace(plan, boots=()))


def require_bootable(plan: Plan) -> None:
    """UsageError for what takes a guest."""
    experiment, parameters = plan.experiment, plan.scale.parameters
    if parameters.content == "stores" or experiment.names_disks:
        raise UsageError(f"{experiment.name} works on disks of a guest, and not yet on those of a machine.")
    if parameters.nodes:
        raise UsageError(f"{experiment.name} wants nodes of memory, which only guests have so far.")


@dataclass(frozen=True)
class HostBootable(Bootable):
    kernel: BuiltKernel
    programs: dict[str, Path]
    disks: tuple[Path, ...]
    """Images as QEMU has them."""
    plan: Plan
    """Without its boots."""

    def boot(self, consoles: Path) -> AbstractContextManager[Session]:
        raise UsageError("This kernel is for a machine: use --host, or './lab bundle'.")

    @property
    def boot_arguments(self) -> str:
        """As much memory and as many processors as the experiment has."""
        parameters = self.plan.scale.parameters
        return f"mem={parameters.memory_bytes >> 20}M nr_cpus={parameters.cpus}"

    def jobs(self, step: Step, disk: str) -> list[tuple[Sequence[str], float]]:
        """What a step takes, each with its deadline in seconds; the last reads counts of hardware, if any."""
        *settings, (command, limit) = jobs_of(self.plan, step, disk)
        if not self.plan.scale.parameters.hardware_counters:
            return [*settings, (command, limit)]
        return [*settings, (counting(command), limit), (READ_COUNTS, limit)]

    def settings(self, disk: Callable[[int], str]) -> list[list[str]]:
        """What comes before the first step, where ``disk`` says what the kernel calls each disk."""
        return [*mounts(self.plan, disk), watermarks(self.plan)]

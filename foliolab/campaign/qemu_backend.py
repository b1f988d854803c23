# SPDX-License-Identifier: GPL-2.0-only
"""Cells in a QEMU guest."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from foliolab.arch import Architecture, Bytes
from foliolab.campaign.job import Backend, Bootable
from foliolab.campaign.step import jobs_of, metrics_of, mounts, watermarks
from foliolab.disks import stores
from foliolab.disks.userland import SELECTIONS, Userland
from foliolab.errors import MissingTool, UsageError
from foliolab.experiment.cell import Cell
from foliolab.experiment.plan import Plan, Step
from foliolab.experiment.spec import ROOTS, Experiment
from foliolab.files import digest, digest_files
from foliolab.kernel import module
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.name import stem
from foliolab.vm.accel import Accelerator, qemu_version
from foliolab.vm.counted import NOTHING_BESIDE, CountedAround, run_counted
from foliolab.vm.disk import LAYOUT, DataDisk, FileTrees
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs, program_sources, with_headers
from foliolab.vm.outcome import JobResult, Outcome, OutcomeKind, failure
from foliolab.vm.switches import require_module


def probe_parts(experiment: Experiment, arch: Architecture) -> list[str]:
    """Hashes of what decides what a probe does on any machine: its sources, how disks are made, its root directories.

    UsageError without such a program.
    """
    program = experiment.argv[0]
    known = program_sources()
    if program not in known:
        raise UsageError(f"{experiment.name} runs '{program}', which is no program of guest/.")
    parameters = [scale.parameters for scale in experiment.scales.values()]
    names = {entry.content for entry in parameters} & ROOTS
    if any(entry.programs for entry in parameters):
        names |= {"programs"}
    roots = [Userland.selected(arch, SELECTIONS[name]).hash for name in sorted(names)]
    return [digest_files(with_headers(known[program])), LAYOUT, *roots]


@dataclass(frozen=True)
class QemuBackend(Backend):
    """Boots kernels in QEMU, with the data disk as the first."""

    architecture: Architecture
    accelerator: Accelerator

    @property
    def name(self) -> str:
        return self.accelerator.backend

    def made_with(self, kernel: BuiltKernel) -> str:
        qemu = qemu_version(self.architecture).decode().splitlines()[0]
        return "; ".join(filter(None, (qemu, kernel.compiler)))

    def workload_hash(self, experiment: Experiment) -> str:
        """Over the program's source, the headers that it includes, what it finds, and the machine that it runs on.

        UsageError without such a program.
        """
        sources, layout, *roots = probe_parts(experiment, self.architecture)
        return digest([sources, qemu_version(self.architecture), layout, *self.accelerator.options, *roots])

    def data_hash(self, plan: Plan, cell: Cell) -> str:
        """Over the database that a cell works on, if it is one of a store that can be had here."""
        if plan.scale.parameters.content != "stores" or self._lacking(cell):
            return ""
        return self._store(cell).hash

    def obstacle(self, plan: Plan, step: Step) -> str:
        """What a store takes and is not installed. A guest runs any program under any switches, or says why not."""
        return self._lacking(step.cell) if plan.scale.parameters.content == "stores" else ""

    def prepare(self, kernel: BuiltKernel, plan: Plan) -> "QemuBootable":
        parameters = plan.scale.parameters
        image = initramfs(guest_programs(self.architecture), modules=kernel.modules)
        counting = self.accelerator.counts_instructions
        bare = GuestConfig(
            self.architecture,
            kernel.image,
            image,
            self.accelerator,
            kernel_name=kernel.name,
            boot_arguments=kernel.boot_arguments(counting=counting, timed=bool(parameters.disk)),
        )
        disks = tuple(self._disks(plan, bare))
        config = replace(bare, memory_mib=parameters.memory_bytes >> 20, cpus=parameters.cpus, disks=disks)
        config = replace(config, nodes=parameters.nodes, distances=parameters.distances)
        config = replace(config, device=parameters.disk, disk_bus=parameters.disk_bus)
        of_stores = parameters.content == "stores"
        mounting = stores.mounts(self._stores(plan), config) if of_stores else mounts(plan, config.disk_name)
        setup = [*mounting, watermarks(plan)]
        version = qemu_version(self.architecture)
        return QemuBootable(config, replace(plan, boots=()), setup, bool(kernel.module), version)

    def _disks(self, plan: Plan, guest: GuestConfig) -> list[Disk]:
        parameters = plan.scale.parameters
        match parameters.content:
            case "zeros" | "stubs" as content:
                disks = [DataDisk(parameters.filesystem, parameters.file_bytes, content).prepare(guest)]
            case "trees":
                trees = tuple(parameters.trees.split())
                disks = [FileTrees(parameters.filesystem, trees).prepare(guest)]
            case "stores":
                disks = stores.prepare(self._stores(plan), guest)
            case root:
                disks = [self._userland(root).prepare(guest)]
        if parameters.programs:
            disks.append(self._userland("programs").prepare(guest))
        return disks

    def _userland(self, name: str) -> Userland:
        return Userland.selected(self.architecture, SELECTIONS[name])

    def _stores(self, plan: Plan) -> list[stores.StoreDisk]:
        """Of the stores that the plan's cells are about."""
        cells = [step.cell for step in plan.steps if not self._lacking(step.cell)]
        disks = {disk.store: disk for disk in map(self._store, cells)}
        return [disks[name] for name in sorted(disks)]

    def _lacking(self, cell: Cell) -> str:
        """The program that is missing here to make a cell's store, as a sentence; empty if none is."""
        try:
            self._store(cell)
        except MissingTool as error:
            return str(error)
        return ""

    def _store(self, cell: Cell) -> stores.StoreDisk:
        return stores.store_disk(self.architecture, str(cell.as_dict()["store"]))


@dataclass(frozen=True)
class QemuBootable(Bootable):
    config: GuestConfig
    plan: Plan
    """Without its boots."""
    setup: list[list[str]]
    """The jobs that come before the first step."""
    needs_module: bool
    qemu: bytes
    """The version of QEMU that its samples are of."""

    @property
    def files(self) -> list[Path]:
        booted = filter(None, (self.config.kernel, self.config.initramfs))
        return [*booted, *(disk.path for disk in self.config.disks)]

    def elsewhere(self, place: Callable[[Path], Path]) -> "QemuBootable":
        disks = tuple(replace(disk, path=place(disk.path)) for disk in self.config.disks)
        kernel, image = (path and place(path) for path in (self.config.kernel, self.config.initramfs))
        return replace(self, config=replace(self.config, kernel=kernel, initramfs=image, disks=disks))

    def obstacle(self) -> str:
        here = qemu_version(self.config.arch)
        if here == self.qemu:
            return ""
        ours, theirs = (words.decode().partition("\n")[0] for words in (here, self.qemu))
        return f"It has {ours}, and the others {theirs}."

    @contextmanager
    def boot(self, consoles: Path) -> Iterator["QemuSession"]:
        """Boot, with the disks mounted; the session ends with the block."""
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{stem(self.config.kernel_name)}-{secrets.token_hex(3)}"
        with Guest(self.config, consoles / f"{name}.log") as guest:
            for job in self.setup:
                guest.run(job).checked()
            if self.needs_module:
                require_module(guest, module.NAME)
            yield QemuSession(name, guest, self.plan, self.config.kernel_name)


class QemuSession:
    def __init__(self, boot: str, guest: Guest, plan: Plan, kernel: str) -> None:
        self.boot = boot
        self.guest = guest
        """For those who run something else in it as well."""
        self._plan = plan
        self._kernel = kernel
        self.remark = ""
        guest.heard()  # what it said at boot belongs to no measurement

    @property
    def page_size(self) -> Bytes:
        return self.guest.ready.page_size

    def measure(self, step: Step) -> dict[str, int | float]:
        """Run what a step takes; a kernel that complains meanwhile has crashed."""
        self.remark = ""
        *settings, (command, deadline) = jobs_of(self._plan, step, self.guest.config.disk_name(0))
        results = []
        for argv, limit in settings:
            results.append(self.guest.run(argv, limit))
            if results[-1].outcome.kind is not OutcomeKind.OK:
                return self._metrics(step, results)
        parameters = self._plan.scale.parameters
        wanted = {"nodes": bool(parameters.nodes), "hardware": parameters.hardware_counters}
        result, counts = run_counted(self.guest, command, deadline, **wanted)
        if result.outcome.kind is OutcomeKind.OK:
            complaints, self.remark = self.guest.heard()
            if complaints:
                sentence = f"The guest's kernel complained: {complaints[0]}"
                raise failure(Outcome(OutcomeKind.GUEST_CRASH, sentence))
        self.remark = " ".join(filter(None, (counts.remark, self.remark)))
        return self._metrics(step, [*results, result], counts)

    def _metrics(
        self, step: Step, results: list[JobResult], beside: CountedAround = NOTHING_BESIDE
    ) -> dict[str, int | float]:
        wanted, variant, switches = self._plan.experiment.metric, step.variant.name, dict(step.variant.switches)
        counting = self.guest.config.accelerator.counts_instructions
        return metrics_of(results, wanted, self._kernel, variant, switches, beside, counting=counting)

# SPDX-License-Identifier: GPL-2.0-only
"""What somebody asks to be measured: planned, and measured as far as the store lacks it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from foliolab.arch import NATIVE, Architecture, applies, architecture, machine_name
from foliolab.campaign.host_backend import HostBackend, require_bootable
from foliolab.campaign.job import Backend
from foliolab.campaign.model_backend import ModelBackend
from foliolab.campaign.qemu_backend import QemuBackend
from foliolab.campaign.runner import Kernels, Workers, run_plan
from foliolab.campaign.sample import MODEL, Sample
from foliolab.campaign.store import open_store, store_file
from foliolab.device import device_of
from foliolab.errors import UsageError, require_known
from foliolab.experiment import cell, variants
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.metrics import METRICS
from foliolab.experiment.plan import Plan, make_plan
from foliolab.experiment.spec import Experiment
from foliolab.kernel import timed_disk
from foliolab.kernel.build import KernelRequest, build, identify
from foliolab.kernel.config import OPTIONAL
from foliolab.kernel.series import check_names
from foliolab.model.library import PAGE_BYTES
from foliolab.vm.accel import COUNTING, HOST, Wanted, choose

BACKENDS = ("qemu", HOST, MODEL)


@dataclass(frozen=True)
class Request:
    """What to measure. None is the experiment's own choice."""

    experiment: str | Experiment
    """Itself, or its name, or the path of a .toml file."""
    scale: str = "quick"
    variants: Sequence[str] | None = None
    kernels: Sequence[str] = ()
    """By name; empty: those of the variants."""
    again: str | None = None
    """Which of the variants is measured a second time, in boots of its own."""
    cells: Sequence[str | Cell] = ()
    """Each "axis=value", several joined by commas, or a cell; none is all."""
    repetitions: int | None = None
    arch: str = NATIVE.name
    page_size: int | None = None
    """Bytes; None is the architecture's default."""
    accelerator: Wanted | None = None
    profile: str = "lab"
    backend: str = "qemu"
    device: str | None = None
    """Of which kind disks are that take time, as ``device_of`` takes it."""
    hardware_counters: bool = False
    """Read the processor's counters around each probe, also where the experiment does not ask for them."""
    shard: tuple[int, int] = (1, 1)
    """Which part of the plan, of how many; the first is 1."""


@dataclass(frozen=True)
class Collected:
    experiment: Experiment
    samples: list[Sample]
    """Those that were asked for, measured now or before."""
    stored: list[Sample]
    """All of the store, of which these are the newest; where kernels were named, only those of the asked variants."""


def measure(request: Request, workers: Workers | None = None) -> Collected:
    """Measure what the store lacks, by ``workers`` or here. What is not ok raises nothing: see ``failure_of``."""
    plan, backend, kernels = prepared(request)
    with open_store(store_file()) as store:
        samples = run_plan(plan, store, backend, kernels, workers)
        # The plan's samples count as the newest, also where they were measured long ago.
        stored = [*store.samples, *samples]
    if request.kernels:
        asked = {step.variant.name for step in plan.steps}
        stored = [sample for sample in stored if sample.variant in asked]
    return Collected(plan.experiment, samples, stored)


def prepared(request: Request) -> tuple[Plan, Backend, Kernels]:
    """What is to be measured, what runs it, and its kernels, which are not built yet."""
    plan, arch, page_size = planned(request)
    if request.backend == MODEL:
        model = ModelBackend()
        return _on_model(request, plan, arch, page_size), model, Kernels(model.kernel, model.kernel)
    check_names(request.kernels)
    prepare = _on_host if request.backend == HOST else _on_qemu
    plan, backend, extras = prepare(request, plan, arch)

    def wanted(name: str) -> KernelRequest:
        return KernelRequest(arch, name, request.profile, extras, page_size=page_size)

    return plan, backend, Kernels(lambda name: identify(wanted(name)), lambda name: build(wanted(name)))


def default_profile(backend: str) -> str:
    """Of the kernels that a backend boots."""
    return "metal" if backend == HOST else "lab"


def planned(request: Request) -> tuple[Plan, Architecture, int]:
    """What a request comes to, with the machine and its page size in bytes; nothing is built or booted."""
    require_known("There is no backend", [request.backend], BACKENDS)
    experiment = request.experiment
    if isinstance(experiment, str):
        experiment = find_experiment(experiment)
    scale = experiment.scale(request.scale)
    if request.device is not None:
        if not experiment.reads_data:
            raise UsageError(f"{experiment.name} reads no timed disk, so it goes with no --device.")
        parameters = structs.replace(scale.parameters, device=device_of(request.device).name)
        scale = replace(scale, parameters=parameters)
    if request.hardware_counters:
        scale = replace(scale, parameters=structs.replace(scale.parameters, hardware_counters=True))
    chosen = None if request.variants is None else variants.choose(request.variants, variants.load_variants())
    if request.kernels:
        asked = chosen is not None
        chosen = variants.on_kernels(scale.variants if chosen is None else chosen, request.kernels, asked=asked)
    if request.again:
        chosen = scale.variants if chosen is None else chosen
        chosen = (*chosen, *(variants.again(each) for each in chosen if each.name == request.again))
    cells = cell.choose(scale.cells, request.cells)
    arch = architecture(request.arch)
    page_size = arch.page_size(request.page_size)
    if not applies(experiment.machines, machine_name(arch.name, page_size)):
        raise UsageError(f"{experiment.name} is for {', '.join(experiment.machines)} only.")
    plan = make_plan(experiment, scale, variants=chosen, cells=cells, repetitions=request.repetitions)
    plan = plan.part(*request.shard)
    if scale.parameters.disk and request.backend != MODEL:
        timed_disk.check_names(dict.fromkeys(boot.kernel for boot in plan.boots))
    return plan, arch, page_size


_Prepared = tuple[Plan, Backend, tuple[str, ...]]
"""The plan as a backend can run it, the backend, and the extras of its kernels."""


def _on_qemu(request: Request, plan: Plan, arch: Architecture) -> _Prepared:
    experiment, parameters = plan.experiment, plan.scale.parameters
    wanted = request.accelerator or (COUNTING if parameters.device else parameters.accelerator)
    require_counting(experiment.metric, wanted)
    accelerator = choose(arch, wanted, timed=bool(parameters.device))
    extras = _filesystems(plan)
    if parameters.device:
        extras += (timed_disk.EXTRA,)
    if parameters.disk_bus != "virtio":
        extras += (parameters.disk_bus,)
    if parameters.parallel and not accelerator.parallel:
        raise UsageError(
            f"Processors of {experiment.name} have to run at the same time, and those of {arch.name} take turns under"
            f" {accelerator.backend}: use KVM, or arm64 with --accelerator tcg."
        )
    return plan.with_at_most(accelerator.max_cpus), QemuBackend(arch, accelerator), extras


def _on_host(request: Request, plan: Plan, arch: Architecture) -> _Prepared:
    if arch.name != "x86_64" or not arch.native:
        raise UsageError("Only for machines of x86_64 are there kernels yet, and from such machines.")
    if request.accelerator or plan.scale.parameters.device:
        raise UsageError("A machine takes neither --accelerator nor --device: its processors and disks are its own.")
    if request.profile != default_profile(HOST):
        raise UsageError(f"Kernels of the profile {request.profile} have no drivers for a machine's disks.")
    require_bootable(plan)
    require_counting(plan.experiment.metric, "auto")
    return plan, HostBackend(arch), _filesystems(plan)


def _filesystems(plan: Plan) -> tuple[str, ...]:
    """The kernel extras that the plan's file systems need."""
    return tuple(extra for extra in OPTIONAL if extra in plan.scale.parameters.filesystems)


def require_counting(metric: str, wanted: Wanted) -> None:
    """UsageError if the metric takes counting instructions, and the accelerator does not count them."""
    if METRICS[metric].by_instructions and wanted != COUNTING:
        raise UsageError(f"{metric} takes counting instructions: use --accelerator {COUNTING}.")


def _on_model(request: Request, plan: Plan, arch: Architecture, page_size: int) -> Plan:
    """The plan as the model can run it; UsageError if it cannot."""
    other = arch != NATIVE or page_size != PAGE_BYTES
    counted = plan.scale.parameters.hardware_counters
    if counted or request.accelerator or request.profile != "lab" or request.kernels or other:
        raise UsageError(
            "The model boots no kernel: it takes neither --kernel nor --accelerator nor --hardware-counters, no --arch"
            " but this machine's, no --profile but lab, and no --page-size but 4k."
        )
    # Where disks take time, guests have one processor, too.
    return plan.with_at_most(1 if plan.scale.parameters.device else None)

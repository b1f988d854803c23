# SPDX-License-Identifier: GPL-2.0-only
"""lab run: measure an experiment; what the store has already is not measured again."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from rich.console import Console

from foliolab.analyse.select import place_of
from foliolab.arch import NATIVE, architecture
from foliolab.campaign.qemu_backend import QemuBackend
from foliolab.campaign.runner import failure_of, run_plan
from foliolab.campaign.sample import Sample
from foliolab.campaign.store import open_store, store_file
from foliolab.cli.machine import add_machine, machine
from foliolab.errors import UsageError
from foliolab.experiment import cell, variants
from foliolab.experiment.load import find_experiment
from foliolab.experiment.machine import applies, machine_name
from foliolab.experiment.plan import make_plan
from foliolab.kernel.build import BuiltKernel, KernelRequest, build
from foliolab.kernel.config import OPTIONAL, PROFILES
from foliolab.progress import Reporter
from foliolab.report.check import check
from foliolab.report.terminal import print_view
from foliolab.report.view import View, make_views
from foliolab.vm.accel import Wanted, choose


@dataclass(frozen=True)
class RunRequest:
    """What to measure. None is the experiment's own choice."""

    experiment: str
    """A name, or the path of a .toml file."""
    scale: str = "quick"
    variants: Sequence[str] | None = None
    cells: Sequence[str] = ()
    """Each "axis=value", several joined by commas; none is all."""
    repetitions: int | None = None
    arch: str = NATIVE.name
    page_size: int | None = None
    """Bytes; None is the architecture's default."""
    accelerator: Wanted = "auto"
    profile: str = "lab"
    """Of the kernel: lab or debug."""


@dataclass(frozen=True)
class RunResult:
    samples: list[Sample]
    """Those that were asked for, measured now or before."""
    view: View
    """The table that they belong to, with all else that the store has for it."""


def measure(request: RunRequest, report: Reporter) -> RunResult:
    """Measure what the store lacks. Samples that are not ok raise nothing: see ``failure_of``."""
    experiment = find_experiment(request.experiment)
    scale = experiment.scale(request.scale)
    chosen = None if request.variants is None else variants.choose(request.variants, variants.load_variants())
    cells = cell.choose(scale.cells, request.cells)
    arch = architecture(request.arch)
    page_size = arch.page_size(request.page_size)
    if not applies(experiment.machines, machine_name(arch.name, page_size)):
        raise UsageError(f"{experiment.name} is for {', '.join(experiment.machines)} only.")
    plan = make_plan(experiment, scale, variants=chosen, cells=cells, repetitions=request.repetitions)
    accelerator = choose(arch, request.accelerator)
    plan = plan.with_at_most(accelerator.max_cpus)

    extras = tuple(extra for extra in OPTIONAL if extra == scale.parameters.filesystem)

    def kernel_for(flavour: str) -> BuiltKernel:
        return build(KernelRequest(arch, flavour, request.profile, extras, page_size=page_size), report)

    backend = QemuBackend(arch, accelerator, report)
    with open_store(store_file()) as store:
        samples = run_plan(plan, store, backend, kernel_for, report)
        # The plan's samples count as the newest, also where they were measured long ago.
        everything = [*store.samples, *samples]
    views = make_views(everything, {experiment.name: experiment})
    return RunResult(samples, next(view for view in views if place_of(view.group) == place_of(samples[0])))


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "run",
        help="measure an experiment",
        description="Measure an experiment. Killed at any moment, the same command goes on where it was.",
        epilog="example: ./lab run sparse-mmap --variant unpatched,series --cell pattern=random",
    )
    parser.add_argument("experiment", help="its name, or the path of a .toml file")
    parser.add_argument(
        "--scale", default="quick", help="quick: an eighth of the published sizes; full; demo (default: quick)"
    )
    parser.add_argument("--variant", metavar="V,...", help="only these variants")
    parser.add_argument(
        "--cell", metavar="AXIS=VALUE,...", action="append", default=[], help="only these cells; may be repeated"
    )
    parser.add_argument("--repetitions", metavar="N", type=int, help="boots of each kernel")
    parser.add_argument("--backend", choices=["qemu"], default="qemu", help="what executes the kernel")
    parser.add_argument(
        "--accelerator",
        choices=get_args(Wanted),
        default="auto",
        help="auto: KVM where it works, else emulation (tcg); icount: emulation that counts instructions",
    )
    add_machine(parser)
    parser.add_argument("--profile", choices=PROFILES, default="lab", help="debug: a kernel with KASAN and lockdep")
    parser.add_argument("--json", action="store_true", help='print {"samples": [...]} and nothing else')
    parser.add_argument("--check", action="store_true", help="exit with 1 if an expectation of the experiment fails")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    arch, page_size = machine(arguments)
    request = RunRequest(
        experiment=arguments.experiment,
        scale=arguments.scale,
        variants=arguments.variant.split(",") if arguments.variant else None,
        cells=arguments.cell,
        repetitions=arguments.repetitions,
        arch=arch.name,
        page_size=page_size,
        accelerator=arguments.accelerator,
        profile=arguments.profile,
    )
    result = measure(request, Reporter())
    if arguments.json:
        print(json.dumps({"samples": [sample.to_json() for sample in result.samples]}, indent=1))
    else:
        print_view(Console(highlight=False), result.view)
    if error := failure_of(result.samples):
        raise error
    if arguments.check:
        check([result.view])
    return 0

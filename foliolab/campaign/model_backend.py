# SPDX-License-Identifier: GPL-2.0-only
"""Cells in the model of the page cache: no kernel is built or booted, and nothing takes time.

The model knows what the guest's sparse-mmap does with one thread. It reads the very command that the guest would run.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from foliolab.arch import X86_64
from foliolab.campaign.job import Backend, Bootable
from foliolab.campaign.sample import MODEL
from foliolab.errors import UsageError
from foliolab.experiment.plan import Plan, Step
from foliolab.experiment.spec import Experiment, Parameters
from foliolab.experiment.variants import Variant
from foliolab.files import digest
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.name import parse_name
from foliolab.model.clock import Clock, load_processor
from foliolab.model.compiled import identity, policy_hash
from foliolab.model.library import DEFAULT_REQUEST_KB, KINDS, ORDERS, PAGE_BYTES, Machine, Pattern, simulate

PROGRAM = "sparse-mmap"

# Memory that never holds the file. The kernel says as it boots that it takes 38 MiB of 1 GiB and 226 MiB of 8 GiB;
# it keeps 44 MiB free below the lowest watermark, for huge pages; and its tables of the file take some 5 MiB.
_KEPT_BYTES = 60 << 20
_KEPT_SHARE = 0.026
_FREE_STEPS = 1.5
"""Free memory above that reserve, in steps of watermark_scale_factor: reclaim starts at one and ends at two."""


def file_memory_bytes(parameters: Parameters) -> int:
    """How much of a guest's memory can hold the file."""
    share = _KEPT_SHARE + _FREE_STEPS * parameters.watermark_scale_factor / 10_000
    return max(0, int(parameters.memory_bytes * (1 - share)) - _KEPT_BYTES)


@dataclass(frozen=True)
class ModelBackend(Backend):
    """Takes variants for rules of the model, and their kernels for its policy."""

    @property
    def name(self) -> str:
        return MODEL

    def kernel(self, name: str) -> BuiltKernel:
        """What samples name as their kernel; there is none, and all of them name one architecture."""
        return BuiltKernel(policy_hash(), Path(), name, "lab", X86_64, "model", PAGE_BYTES, ours=True)

    def workload_hash(self, experiment: Experiment) -> str:
        """Over the model and its idea of a guest's memory. UsageError for a program that it does not know."""
        program = experiment.argv[0]
        if program != PROGRAM:
            raise UsageError(f"The model knows what {PROGRAM} does; {experiment.name} runs '{program}'.")
        memory = map(str, (_KEPT_BYTES, _KEPT_SHARE, _FREE_STEPS, DEFAULT_REQUEST_KB))
        return digest([identity(), repr(load_processor()), *memory])

    def obstacle(self, plan: Plan, step: Step) -> str:
        """Why the model cannot say what a step does, as a sentence; empty if it can."""
        try:
            _accesses(plan, step)
        except ValueError as error:
            return f"The model does not know {step.cell.label}: {error}."
        return "" if _rules(step.variant) else f"The model does not know the variant '{step.variant.name}'."

    def prepare(self, kernel: BuiltKernel, plan: Plan) -> "ModelBootable":
        return ModelBootable(replace(plan, boots=()), identity())


@dataclass(frozen=True)
class ModelBootable(Bootable):
    """Takes nothing."""

    plan: Plan
    model: str
    """What its samples are of."""

    def obstacle(self) -> str:
        return "" if identity() == self.model else "Its model of the page cache is another one."

    @contextmanager
    def boot(self, consoles: Path) -> Iterator["ModelSession"]:
        yield ModelSession(self.plan)


@dataclass(frozen=True)
class ModelSession:
    """Cells of a plan, each with an empty page cache."""

    plan: Plan
    boot: str = ""
    remark: str = ""
    page_size: int = PAGE_BYTES

    def measure(self, step: Step) -> dict[str, int | float]:
        """Simulate one cell; ModelError for a guest or a pattern that cannot be."""
        parameters = self.plan.scale.parameters
        accesses = _accesses(self.plan, step)
        rules = _rules(step.variant) or ""
        window = parameters.read_ahead_kb * 1024 // PAGE_BYTES
        machine = Machine(
            rules="random" if accesses.hint == "random" or not window else rules,
            file_pages=accesses.file_pages,
            memory_pages=file_memory_bytes(parameters) // PAGE_BYTES,
            read_ahead_pages=max(window, 1),
            request_pages=DEFAULT_REQUEST_KB * 1024 // PAGE_BYTES,
        )
        clock = Clock((parameters.disk,)) if parameters.disk else None
        counts = simulate(machine, accesses.pattern, accesses.count, accesses.passes, clock=clock)
        seconds = {"seconds": counts.seconds[parameters.disk.name]} if parameters.disk else {}
        return {
            **seconds,
            "read_bytes": counts.read_bytes,
            "read_requests": counts.requests,
            "major_faults": counts.major_faults,
            "minor_faults": counts.minor_faults,
            "floor_bytes": accesses.distinct_pages() * PAGE_BYTES,
        }


@dataclass(frozen=True)
class _Accesses:
    file_pages: int
    pattern: Pattern
    count: int
    passes: int
    hint: str

    def distinct_pages(self) -> int:
        """How many pages are accessed: what is read one by one into a memory that loses none."""
        whole = Machine("random", self.file_pages, memory_pages=max(self.file_pages, 2), read_ahead_pages=1)
        return simulate(whole, self.pattern, self.count).pages_read


def _rules(variant: Variant) -> str | None:
    """The model's rules for a variant; None if it has none.

    Only three switches matter to data that one thread maps without hints. Those that a variant does not set stand
    as the kernel boots: the window adapts, and the rules for hits are off.
    """
    if not variant.ours:
        return None if parse_name(variant.kernel).module else "off"
    switches = {name.rpartition("/")[2]: value for name, value in variant.switches}
    hits = [int(switches.get(name, 0)) for name in ("hit_needs_address", "hit_needs_first_try")]
    match [int(switches.get("adaptive", 1)), *hits]:
        case [1, _, _]:
            return "adaptive"
        case [0, 1, 1]:
            return "published"
        case [0, 0, 0]:
            return "off"
    return None


class _Options(ArgumentParser):
    """The options of the probe; whatever is wrong is a ValueError."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self.add_argument("--file")
        self.add_argument("--drop-caches", action="store_true")
        self.add_argument("--pattern", dest="kind", choices=KINDS, default="random")
        self.add_argument("--order", choices=ORDERS, default="forward")
        for name in ("--stride", "--streams", "--object", "--burst", "--count"):
            self.add_argument(name, type=int, default=0)
        for name in ("--passes", "--threads", "--seed"):
            self.add_argument(name, type=int, default=1)
        self.add_argument("--region", type=float, default=0.0)
        self.add_argument("--fraction", type=float, default=0.01)
        self.add_argument("--hint", choices=("normal", "random"), default="normal")

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _accesses(plan: Plan, step: Step) -> _Accesses:
    """What the probe's command does; ValueError for what the model cannot."""
    parameters = plan.scale.parameters
    options = _Options().parse_args(plan.experiment.command(step.cell, parameters, step.repetition, "")[1:])
    if options.threads != 1:
        raise ValueError("it has one thread only")
    file_pages = parameters.file_bytes // PAGE_BYTES
    pattern = Pattern(**{name: getattr(options, name) for name in Pattern.__struct_fields__})
    count = options.count or max(int(file_pages * options.fraction), 1)
    return _Accesses(file_pages, pattern, count, options.passes, options.hint)

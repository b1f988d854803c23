# SPDX-License-Identifier: GPL-2.0-only
"""Running a plan: what the store lacks is measured, one job for each boot, and recorded.

A guest that does not boot ends the run. What the machine cannot have, or the backend cannot execute, is
recorded as not applicable, without a boot.
"""

import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from foliolab.arch import machine_name
from foliolab.campaign.job import Backend, Job, Watcher, Work, ended, execute
from foliolab.campaign.sample import LOST_HOST, MODEL, NOT_APPLICABLE, OK, KernelFacts, Sample, with_key
from foliolab.campaign.store import Store
from foliolab.errors import BuildError, LabError
from foliolab.experiment.cell import Cell
from foliolab.experiment.plan import Plan, Step
from foliolab.files import digest
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.code import code_of
from foliolab.progress import say, working
from foliolab.vm.accel import real_time
from foliolab.vm.outcome import Outcome, OutcomeKind, failure


@dataclass(frozen=True)
class Kernels:
    """Where a campaign has its kernels from, by their names."""

    identify: Callable[[str], BuiltKernel]
    """The kernel, which need not be built yet."""
    build: Callable[[str], BuiltKernel]
    """The same, built if need be."""


class Workers(Protocol):
    """Whoever executes jobs."""

    def run(self, jobs: Iterable[Job], consoles: Path, watcher: Watcher) -> None:
        """Execute all of them; a job is made when it is asked for. Raises what ``execute`` does."""

    def timed_on(self) -> str:
        """The only host that executes jobs in which seconds are measured; ClusterError if there is not one."""


class Here:
    """One job after the other, in this process."""

    def run(self, jobs: Iterable[Job], consoles: Path, watcher: Watcher) -> None:
        for job in jobs:
            execute(job, consoles, watcher)

    def timed_on(self) -> str:
        return platform.node()


def run_plan(
    plan: Plan, store: Store, backend: Backend, kernels: Kernels, workers: Workers | None = None
) -> list[Sample]:
    """Measure what the store does not have yet; return the plan's samples in its order, whatever their outcome.

    Raises GuestFailure if a guest ends before it can run any cell.
    """
    workers = workers or Here()
    host = workers.timed_on() if real_time(backend.name) else platform.node()
    return _Campaign(plan, store, backend, kernels, host).run(workers)


def jobs_of(plan: Plan, store: Store, backend: Backend, kernels: Kernels) -> list[Job]:
    """What ``run_plan`` would have executed on a machine whose name nobody knows yet: a job for each boot."""
    return _Campaign(plan, store, backend, kernels, host="").jobs()


def failure_of(samples: Iterable[Sample]) -> LabError | None:
    """The error for samples that failed, of the kind of the first one; None if none did."""
    failed = [sample for sample in samples if sample.outcome not in (OK, NOT_APPLICABLE)]
    if not failed:
        return None
    first = failed[0]
    place = f"{Cell.of(first.cell).label}, {first.variant}, repetition {first.repetition}"
    more = f" ({len(failed) - 1} more failed.)" if len(failed) > 1 else ""
    return failure(Outcome(OutcomeKind(first.outcome), f"{place}: {first.sentence}{more}"))


class _Campaign:
    def __init__(self, plan: Plan, store: Store, backend: Backend, kernels: Kernels, host: str) -> None:
        self._plan = plan
        self._store = store
        self._backend = backend
        self._host = host
        self._build = kernels.build
        self._kernels = {name: kernels.identify(name) for name in dict.fromkeys(boot.kernel for boot in plan.boots)}
        booted = {} if backend.name == MODEL else self._kernels
        without = plan.experiment.unaffected_by
        self._codes = {name: code_of(name, kernel.version, without) for name, kernel in booted.items()}
        self._made_with = {name: backend.made_with(kernel) for name, kernel in self._kernels.items()}
        # Also because what is hashed may be changed meanwhile, and a measurement keeps its key.
        self._data = {cell: backend.data_hash(plan, cell) for cell in dict.fromkeys(step.cell for step in plan.steps)}
        self._workload = digest([backend.workload_hash(plan.experiment), *plan.experiment.argv])
        # What did not apply without a boot may apply one day; what a kernel did not have it will not get.
        decided = (sample for sample in store.samples if not sample.passed_over)
        self._had = {sample.key: sample for sample in decided if sample.outcome != LOST_HOST}

    def run(self, workers: Workers) -> list[Sample]:
        self._pass_over()
        steps = self._plan.steps
        missing = sum(self._key(step) not in self._had for step in steps)
        if had := len(steps) - missing:
            say(f"{had} of {len(steps)} measurements are in the store already.")
        if missing:
            jobs = self._jobs()
            with working(f"Measuring {self._plan.experiment.name}", total=missing) as task:

                def record(sample: Sample, last: bool) -> None:
                    if sample.key in self._had:  # an earlier run of a machine may hold more than was asked for
                        return
                    self._store.append(sample)
                    if sample.sentence and sample.outcome != NOT_APPLICABLE:
                        console = self._store.consoles / f"{sample.boot}.log"
                        place = f"{Cell.of(sample.cell).label}, {sample.variant}"
                        say(f"{place}: {sample.sentence} Its console: {console}")
                    if last:
                        self._had[sample.key] = sample
                        task.advance()

                workers.run(jobs, self._store.consoles, Watcher(record, task.note, say))
        return [self._had[self._key(step)] for step in steps]

    def jobs(self) -> list[Job]:
        """All that apply and that the store lacks."""
        self._pass_over()
        return list(self._jobs())

    def _pass_over(self) -> None:
        """Record what does not apply to this machine, unless the store says so already."""
        known = {sample.key: sample for sample in self._store.samples if sample.outcome == NOT_APPLICABLE}
        for step in self._plan.steps:
            key, variant = self._key(step), step.variant
            kernel = self._kernels[variant.kernel]
            machine = machine_name(kernel.arch.name, kernel.page_size)
            obstacle = (
                variant.obstacle(machine) or variant.lacking(kernel.ours) or self._backend.obstacle(self._plan, step)
            )
            if key in self._had or not obstacle:
                continue
            if key not in known:
                self._store.append(ended(self._form(step), Outcome(OutcomeKind.NOT_APPLICABLE, obstacle)))
                known[key] = self._store.samples[-1]
            self._had[key] = known[key]

    def _jobs(self) -> Iterator[Job]:
        """One for each boot, made when it is asked for, of kernels that are built now."""
        boots = (
            (boot.kernel, [step for step in boot.steps if self._key(step) not in self._had])
            for boot in self._plan.boots
        )
        pending = [(kernel, steps) for kernel, steps in boots if steps]
        for name in dict.fromkeys(kernel for kernel, _ in pending):
            kernel = self._build(name)
            if kernel.hash != self._kernels[name].hash:
                raise BuildError(f"What {name} is built from changed meanwhile; start again.")
            self._kernels[name] = kernel
        return (self._job(kernel, steps) for kernel, steps in pending)

    def _job(self, kernel: str, steps: list[Step]) -> Job:
        bootable = self._backend.prepare(self._kernels[kernel], self._plan)
        return Job(bootable, kernel, tuple(Work(step, self._form(step)) for step in steps))

    def _form(self, step: Step) -> Sample:
        """What is known of a sample before it is measured."""
        kernel = self._kernels[step.variant.kernel]
        form = Sample(
            key="",
            experiment=self._plan.experiment.name,
            cell=step.cell.as_dict(),
            variant=step.variant.name,
            switches=dict(step.variant.switches),
            arch=kernel.arch.name,
            page_size=kernel.page_size,
            backend=self._backend.name,
            scale=self._plan.scale.name,
            repetition=step.repetition,
            outcome="",
            sentence="",
            kernel=KernelFacts.of(kernel),
            profile=kernel.profile,
            workload=self._workload,
            parameters=self._plan.scale.parameters.recorded(),
            metrics={},
            boot="",
            recorded="",
            device=self._plan.scale.parameters.device,
            data=self._data[step.cell],
            host=self._host,
            code=self._codes.get(step.variant.kernel, ""),
            made_with=self._made_with[step.variant.kernel],
        )
        return with_key(form)

    def _key(self, step: Step) -> str:
        return self._form(step).key

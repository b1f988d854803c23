# SPDX-License-Identifier: GPL-2.0-only
"""Running a plan: boot, measure, record, and go on after whatever a guest does.

A guest that crashes, hangs or gives no result while it runs a cell is a result: it is recorded as the
cell's sample and not tried again; the rest of its boot goes on in a new one. Only a lost host is tried
again, and every attempt at a cell is recorded. A guest that does not boot ends the run. What the machine
cannot have, or the backend cannot execute, is recorded as not applicable, without a boot.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import UTC, datetime

from foliolab.campaign.backend import Backend, Session
from foliolab.campaign.sample import LOST_HOST, NOT_APPLICABLE, OK, KernelFacts, Sample
from foliolab.campaign.store import Store
from foliolab.errors import LabError
from foliolab.experiment.cell import Cell
from foliolab.experiment.machine import machine_name
from foliolab.experiment.plan import Plan, PlannedBoot, Step
from foliolab.files import digest
from foliolab.kernel.build import BuiltKernel
from foliolab.progress import Reporter, Task
from foliolab.vm.guest import GuestFailure, failure
from foliolab.vm.outcome import Outcome, OutcomeKind

ATTEMPTS = 3
"""How often a measurement, or a boot, is tried while the host fails."""

KernelFor = Callable[[str], BuiltKernel]
"""The kernel of a name, built if need be."""


def run_plan(plan: Plan, store: Store, backend: Backend, kernel_for: KernelFor, report: Reporter) -> list[Sample]:
    """Measure what the store does not have yet; return the plan's samples in its order, whatever their outcome.

    Raises GuestFailure if a guest ends before it can run any cell.
    """
    return _Campaign(plan, store, backend, kernel_for, report).run()


def failure_of(samples: Iterable[Sample]) -> LabError | None:
    """The error for samples that failed, of the kind of the first one; None if none did."""
    failed = [sample for sample in samples if sample.outcome not in (OK, NOT_APPLICABLE)]
    if not failed:
        return None
    first = failed[0]
    place = f"{Cell.of(first.cell).label}, {first.variant}, repetition {first.repetition}"
    more = f" ({len(failed) - 1} more failed.)" if len(failed) > 1 else ""
    return failure(Outcome(OutcomeKind(first.outcome), f"{place}: {first.sentence}{more}"))


def _lacked(sample: Sample) -> bool:
    """Whether a kernel turned out to lack what was to be measured."""
    return sample.outcome == NOT_APPLICABLE and bool(sample.boot)


class _Campaign:
    def __init__(self, plan: Plan, store: Store, backend: Backend, kernel_for: KernelFor, report: Reporter) -> None:
        self._plan = plan
        self._store = store
        self._backend = backend
        self._report = report
        self._kernels = {name: kernel_for(name) for name in dict.fromkeys(boot.kernel for boot in plan.boots)}
        # Also because what is hashed may be changed meanwhile, and a measurement keeps its key.
        self._data = {cell: backend.data_hash(plan, cell) for cell in dict.fromkeys(step.cell for step in plan.steps)}
        self._workload = digest([backend.workload_hash(plan.experiment), *plan.experiment.argv])
        # What did not apply without a boot may apply one day; what a kernel did not have it will not get.
        undecided = (LOST_HOST, NOT_APPLICABLE)
        final = [each for each in store.samples if each.outcome not in undecided or _lacked(each)]
        self._had = {sample.key: sample for sample in final}

    def run(self) -> list[Sample]:
        self._pass_over()
        steps = self._plan.steps
        missing = sum(self._key(step) not in self._had for step in steps)
        if had := len(steps) - missing:
            self._report.say(f"{had} of {len(steps)} measurements are in the store already.")
        if missing:
            with self._report.task(f"Measuring {self._plan.experiment.name}", total=missing) as task:
                for boot in self._plan.boots:
                    self._run_boot(boot, task)
        return [self._had[self._key(step)] for step in steps]

    def _pass_over(self) -> None:
        """Record what does not apply to this machine, unless the store says so already."""
        known = {sample.key: sample for sample in self._store.samples if sample.outcome == NOT_APPLICABLE}
        for step in self._plan.steps:
            key, variant = self._key(step), step.variant
            kernel = self._kernels[variant.kernel]
            machine = machine_name(self._backend.arch, kernel.page_size)
            obstacle = (
                variant.obstacle(machine) or variant.lacking(kernel.ours) or self._backend.obstacle(self._plan, step)
            )
            if key in self._had or not obstacle:
                continue
            if key not in known:
                outcome = Outcome(OutcomeKind.NOT_APPLICABLE, obstacle)
                self._store.append(self._sample(None, step, {}, outcome))
                known[key] = self._store.samples[-1]
            self._had[key] = known[key]

    def _run_boot(self, planned: PlannedBoot, task: Task) -> None:
        pending = deque(step for step in planned.steps if self._key(step) not in self._had)
        failed_attempts = 0
        while pending:
            with ExitStack() as stack:
                task.note(f"booting {planned.kernel}")
                session = self._boot(stack, self._kernels[planned.kernel])
                outcome = OK
                while pending and outcome in (OK, NOT_APPLICABLE):
                    step = pending[0]
                    task.note(f"{step.cell.label}, {step.variant.name}")
                    sample = self._measure(session, step)
                    self._store.append(sample)
                    outcome = sample.outcome
                    failed_attempts = failed_attempts + 1 if outcome == LOST_HOST else 0
                    if outcome != LOST_HOST or failed_attempts == ATTEMPTS:
                        self._had[sample.key] = sample
                        failed_attempts = 0
                        pending.popleft()
                        task.advance()

    def _boot(self, stack: ExitStack, kernel: BuiltKernel) -> Session:
        attempt = 1
        while True:
            try:
                return stack.enter_context(self._backend.boot(kernel, self._plan, self._store.consoles))
            except GuestFailure as error:
                if error.outcome.kind is not OutcomeKind.LOST_HOST or attempt == ATTEMPTS:
                    raise
                self._report.say(f"{error} Trying again.")
                attempt += 1

    def _measure(self, session: Session, step: Step) -> Sample:
        try:
            metrics = session.measure(step)
        except GuestFailure as error:
            if error.outcome.kind is not OutcomeKind.NOT_APPLICABLE:
                console = self._store.consoles / f"{session.boot}.log"
                self._report.say(f"{step.cell.label}, {step.variant.name}: {error} Its console: {console}")
            return self._sample(session, step, {}, error.outcome)
        return self._sample(session, step, metrics, Outcome(OutcomeKind.OK, ""))

    def _sample(self, session: Session | None, step: Step, metrics: dict[str, int | float], outcome: Outcome) -> Sample:
        kernel = self._kernels[step.variant.kernel]
        return Sample(
            key=self._key(step),
            experiment=self._plan.experiment.name,
            cell=step.cell.as_dict(),
            variant=step.variant.name,
            switches=dict(step.variant.switches),
            arch=self._backend.arch,
            page_size=session.page_size if session else kernel.page_size,
            backend=self._backend.name,
            scale=self._plan.scale.name,
            repetition=step.repetition,
            outcome=outcome.kind.value,
            sentence=outcome.sentence,
            kernel=KernelFacts.of(kernel),
            profile=kernel.profile,
            workload=self._workload,
            parameters=self._plan.scale.parameters.recorded(),
            metrics=metrics,
            boot=session.boot if session else "",
            recorded=datetime.now(UTC).isoformat(timespec="seconds"),
            data=self._data[step.cell],
        )

    def _key(self, step: Step) -> str:
        variant = step.variant
        decisive = {
            "experiment": self._plan.experiment.name,
            "scale": self._plan.scale.name,
            "parameters": self._plan.scale.parameters.recorded(),
            "cell": step.cell.as_dict(),
            "variant": variant.name,
            "switches": dict(variant.switches),
            "repetition": step.repetition,
            "kernel": self._kernels[variant.kernel].hash,
            "workload": self._workload,
            "backend": self._backend.name,
        }
        if data := self._data[step.cell]:
            decisive["data"] = data
        return digest([json.dumps(decisive, sort_keys=True)])

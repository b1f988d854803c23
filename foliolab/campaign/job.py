# SPDX-License-Identifier: GPL-2.0-only
"""One boot and what is to be measured in it, here or on another host, by whatever backend.

A guest that crashes, hangs or gives no result while it runs a cell is a result: it is recorded as the
cell's sample and not tried again; the rest goes on in a new boot. Only a lost host is tried again, and every
attempt at a cell is recorded.
"""

import os
import platform
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from foliolab.arch import Bytes
from foliolab.campaign.sample import LOST_HOST, NOT_APPLICABLE, OK, Sample
from foliolab.experiment.cell import Cell
from foliolab.experiment.plan import Plan, Step
from foliolab.experiment.spec import Experiment
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.outcome import GuestFailure, Outcome, OutcomeKind


class Session(Protocol):
    """One boot of one kernel."""

    @property
    def boot(self) -> str:
        """A name that no other boot has."""

    @property
    def page_size(self) -> Bytes: ...

    @property
    def remark(self) -> str:
        """What was odd about the last measurement, and no fault, as a sentence; empty if nothing was."""

    def measure(self, step: Step) -> dict[str, int | float]:
        """Run one cell and return its metrics; raises GuestFailure when there are none."""


class Bootable(Protocol):
    """All that boots of one kernel take, made and ready. It can be sent to another process, or host."""

    @property
    def files(self) -> Sequence[Path]:
        """Of the cache: what another host has to have."""
        return ()

    def elsewhere(self, place: Callable[[Path], Path]) -> "Bootable":
        """The same with its files where ``place`` says."""
        return self

    def obstacle(self) -> str:
        """Why this host cannot execute it as the one that made it, as a sentence; empty if it can."""
        return ""

    def boot(self, consoles: Path) -> AbstractContextManager[Session]:
        """Boot, with the console logged in ``consoles``; raises GuestFailure if that fails."""


class Backend(Protocol):
    @property
    def name(self) -> str:
        """As samples have it, for instance "qemu-tcg" or "model"."""

    def made_with(self, kernel: BuiltKernel) -> str:
        """What made and executes a kernel, in words; empty if nothing did."""
        return ""

    def workload_hash(self, experiment: Experiment) -> str:
        """A hash of the sources of the program that the experiment runs."""

    def data_hash(self, plan: Plan, cell: Cell) -> str:
        """A hash of what a cell of a plan works on, if not all cells of its experiment work on the same; else empty."""
        return ""

    def obstacle(self, plan: Plan, step: Step) -> str:
        """Why it cannot execute a step, as a sentence; empty if it can."""
        return ""

    def prepare(self, kernel: BuiltKernel, plan: Plan) -> Bootable:
        """What executes steps of a plan on ``kernel``; its disks are made here, if need be."""


ATTEMPTS = 3
"""How often a measurement, or a boot, is tried while the host fails."""


@dataclass(frozen=True)
class Work:
    step: Step
    form: Sample
    """What is known of its sample before."""


@dataclass(frozen=True)
class Job:
    """Plain data, like what is made of it."""

    bootable: Bootable
    kernel: str
    works: tuple[Work, ...]


@dataclass(frozen=True)
class Watcher:
    """Who wants to know how a job goes."""

    record: Callable[[Sample, bool], None]
    """Called with each attempt as it ends, and whether it is the last one at its measurement."""
    note: Callable[[str], None]
    say: Callable[[str], None]


def execute(job: Job, consoles: Path, watcher: Watcher) -> None:
    """Measure all of a job; raises GuestFailure if a guest ends before it can run any cell."""
    pending = deque(job.works)
    failed_attempts = 0
    while pending:
        with ExitStack() as stack:
            watcher.note(f"booting {job.kernel}")
            started = time.monotonic()
            session = _boot(stack, job.bootable, consoles, watcher)
            outcome = OK
            while pending and outcome in (OK, NOT_APPLICABLE):
                watcher.note(f"{pending[0].step.cell.label}, {pending[0].step.variant.name}")
                sample = replace(_measure(session, pending[0]), took=round(time.monotonic() - started, 1))
                started = time.monotonic()
                outcome = sample.outcome
                failed_attempts = failed_attempts + 1 if outcome == LOST_HOST else 0
                last = outcome != LOST_HOST or failed_attempts == ATTEMPTS
                watcher.record(sample, last)
                if last:
                    failed_attempts = 0
                    pending.popleft()


def _boot(stack: ExitStack, bootable: Bootable, consoles: Path, watcher: Watcher) -> Session:
    attempt = 1
    while True:
        try:
            return stack.enter_context(bootable.boot(consoles))
        except GuestFailure as error:
            if error.outcome.kind is not OutcomeKind.LOST_HOST or attempt == ATTEMPTS:
                raise
            watcher.say(f"{error} Trying again.")
            attempt += 1


def _measure(session: Session, work: Work) -> Sample:
    processors = f"{platform.machine()} with {os.cpu_count()} processors"
    made_with = "; ".join(filter(None, (processors, work.form.made_with)))
    form = replace(work.form, page_size=session.page_size, boot=session.boot, host=platform.node(), made_with=made_with)
    try:
        metrics = session.measure(work.step)
    except GuestFailure as error:
        return ended(form, error.outcome)
    return ended(replace(form, metrics=metrics), Outcome(OutcomeKind.OK, session.remark))


def ended(form: Sample, outcome: Outcome) -> Sample:
    """The sample of an attempt that has just ended so."""
    recorded = datetime.now(UTC).isoformat(timespec="seconds")
    return replace(form, outcome=outcome.kind.value, sentence=outcome.sentence, recorded=recorded)

# SPDX-License-Identifier: GPL-2.0-only
"""A backend without guests, for tests of what a campaign does with results.

As a program (``python -m tests.campaign.fake STORE``) it runs a whole plan into that store, to be killed.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from foliolab.arch import X86_64
from foliolab.campaign.runner import Kernels, Workers, run_plan
from foliolab.campaign.sample import Sample
from foliolab.campaign.store import open_store
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import Plan, Step, make_plan
from foliolab.experiment.spec import Experiment
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.outcome import GuestFailure, Outcome, OutcomeKind, failure

Measure = Callable[[Step, int], dict[str, int | float]]
"""Given the step and how often it was tried before."""


def plain(step: Step, tried: int) -> dict[str, int | float]:
    return {"read_bytes": 1000, "seconds": 0.5}


def ending(kind: OutcomeKind, *, booted: bool = True) -> Exception:
    return failure(Outcome(kind, f"It ended with {kind.value}.", booted=booted))


@dataclass
class FakeBackend:
    measure: Measure = plain
    failing_boots: list[OutcomeKind] = field(default_factory=list)
    """How the next boots fail."""
    data: dict[Cell, str] = field(default_factory=dict)
    """What each cell works on."""
    boots: int = 0
    tried: Counter[Step] = field(default_factory=Counter)
    name: str = "fake"
    files: tuple[Path, ...] = ()

    def made_with(self, kernel: BuiltKernel) -> str:
        return "a fake"

    def workload_hash(self, experiment: Experiment) -> str:
        return "w1"

    def data_hash(self, plan: Plan, cell: Cell) -> str:
        return self.data.get(cell, "")

    def obstacle(self, plan: Plan | None = None, step: Step | None = None) -> str:
        return ""

    def prepare(self, kernel: BuiltKernel, plan: Plan) -> "FakeBackend":
        return self

    def elsewhere(self, place: Callable[[Path], Path]) -> "FakeBackend":
        return replace(self, files=tuple(map(place, self.files)))

    @contextmanager
    def boot(self, consoles: Path) -> Iterator["FakeSession"]:
        self.boots += 1
        if self.failing_boots:
            kind = self.failing_boots.pop(0)
            raise ending(kind, booted=kind is OutcomeKind.LOST_HOST)
        yield FakeSession(f"boot-{self.boots}", self)


@dataclass
class FakeSession:
    boot: str
    backend: FakeBackend
    remark: str = ""
    page_size: int = 4096
    ended: bool = False

    def measure(self, step: Step) -> dict[str, int | float]:
        assert not self.ended, "a guest that failed was used again"
        tried = self.backend.tried[step]
        self.backend.tried[step] += 1
        try:
            return self.backend.measure(step, tried)
        except Exception as error:
            self.ended = not isinstance(error, GuestFailure) or error.outcome.kind is not OutcomeKind.NOT_APPLICABLE
            raise


def kernel_for(name: str) -> BuiltKernel:
    ours = name == "patched"
    return BuiltKernel(f"hash-{name}", Path("bzImage"), name, "lab", X86_64, "6.12.1-foliolab", 4096, ours)


KERNELS = Kernels(kernel_for, kernel_for)


def fake_plan(repetitions: int = 2) -> Plan:
    experiment = find_experiment("sparse-mmap")
    return make_plan(experiment, experiment.scale("quick"), repetitions=repetitions)


def run_fake(
    file: Path,
    backend: FakeBackend,
    plan: Plan | None = None,
    workers: Workers | None = None,
    kernels: Kernels = KERNELS,
) -> list[Sample]:
    with open_store(file) as store:
        return run_plan(plan or fake_plan(), store, backend, kernels, workers)


def slow(step: Step, tried: int) -> dict[str, int | float]:
    time.sleep(0.02)
    return plain(step, tried)


def slower(step: Step, tried: int) -> dict[str, int | float]:
    """From the second repetition on, so that whoever waits for the first results is in time."""
    time.sleep(0.2 if step.repetition > 1 else 0)
    return slow(step, tried)


@contextmanager
def once(happened: Callable[[], bool], then: Callable[[], object]) -> Iterator[None]:
    """Do something as soon as something else has happened."""

    def wait() -> None:
        while not happened():
            if over.wait(0.05):
                return
        then()

    over = threading.Event()
    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    run_fake(Path(sys.argv[1]), FakeBackend(slow))

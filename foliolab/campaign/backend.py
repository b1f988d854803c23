# SPDX-License-Identifier: GPL-2.0-only
"""What a campaign needs of whatever executes its cells."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from foliolab.experiment.cell import Cell
from foliolab.experiment.plan import Plan, Step
from foliolab.experiment.spec import Experiment
from foliolab.kernel.built import BuiltKernel


class Session(Protocol):
    """One boot of one kernel."""

    @property
    def boot(self) -> str:
        """A name that no other boot has."""

    @property
    def page_size(self) -> int:
        """Bytes."""

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

    def elsewhere(self, place: Callable[[Path], Path]) -> "Bootable":
        """The same with its files where ``place`` says."""

    def obstacle(self) -> str:
        """Why this host cannot execute it as the one that made it, as a sentence; empty if it can."""

    def boot(self, consoles: Path) -> AbstractContextManager[Session]:
        """Boot, with the console logged in ``consoles``; raises GuestFailure if that fails."""


class Backend(Protocol):
    @property
    def name(self) -> str:
        """As samples have it, for instance "qemu-tcg" or "model"."""

    def made_with(self, kernel: BuiltKernel) -> str:
        """What made and executes a kernel, in words; empty if nothing did."""

    def workload_hash(self, experiment: Experiment) -> str:
        """A hash of the sources of the program that the experiment runs."""

    def data_hash(self, plan: Plan, cell: Cell) -> str:
        """A hash of what a cell of a plan works on, if not all cells of its experiment work on the same; else empty."""

    def obstacle(self, plan: Plan, step: Step) -> str:
        """Why it cannot execute a step, as a sentence; empty if it can."""

    def prepare(self, kernel: BuiltKernel, plan: Plan) -> Bootable:
        """What executes steps of a plan on ``kernel``; its disks are made here, if need be."""

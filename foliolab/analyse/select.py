# SPDX-License-Identifier: GPL-2.0-only
"""Which samples belong into one table: one machine, one set of parameters, the newest kernels."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from foliolab.arch import X86_64, architecture, machine_name, size_name
from foliolab.campaign.sample import OK, KernelFacts, Sample
from foliolab.experiment.cell import Cell
from foliolab.grouped import grouped


@dataclass(frozen=True)
class Group:
    """What a table shares. Its samples may be compared with each other."""

    experiment: str
    scale: str
    arch: str
    page_size: int
    """Bytes."""
    backend: str
    profile: str
    """Of the kernels: lab or debug."""
    timed_on: str
    """The host, where seconds are measured; else empty, and samples are of any."""
    samples: tuple[Sample, ...]
    """The last attempt at each measurement, oldest first."""
    older: int
    """How many samples of older kernels, probes or parameters were left out."""

    @property
    def machine(self) -> str:
        return machine_name(self.arch, self.page_size)

    @property
    def title(self) -> str:
        kernels = f", {self.profile} kernels" if self.profile != "lab" else ""
        pages = f"{self.arch} with {self.page_size // 1024} KiB pages"
        host = f" on {self.timed_on}" if self.timed_on else ""
        return f"{self.experiment}, scale {self.scale}, {pages}, backend {self.backend}{host}{kernels}"

    def to_json(self) -> dict[str, Any]:
        """What rows of a table for programs begin with."""
        names = ("experiment", "scale", "arch", "page_size", "backend", "timed_on")
        return {name: getattr(self, name) for name in names}

    @property
    def kernels(self) -> dict[str, KernelFacts]:
        """By name."""
        return {sample.kernel.name: sample.kernel for sample in self.samples}

    @property
    def options(self) -> list[str]:
        """What tells a command of the lab the scale and the machine, where it would take others."""
        words = []
        if self.scale != "quick":
            words.append(f"--scale {self.scale}")
        if self.arch != X86_64.name:  # documents say the same whatever machine they are made on
            words.append(f"--arch {self.arch}")
        if self.page_size != architecture(self.arch).page_sizes[0]:
            words.append(f"--page-size {size_name(self.page_size)}")
        return words

    @property
    def places(self) -> dict[tuple[Cell, str], list[Sample]]:
        """The samples of each cell and variant."""
        return grouped(self.samples, lambda sample: (Cell.of(sample.cell), sample.variant))


def place_of(thing: Sample | Group) -> tuple[str, str, str, int, str, str, str]:
    """What tells the group of a sample from all others, also of a Group itself."""
    return thing.experiment, thing.scale, thing.arch, thing.page_size, thing.backend, thing.profile, thing.timed_on


def by_repetition(samples: Iterable[Sample]) -> dict[int, Sample]:
    """Those that succeeded, by their repetition, which is their seed."""
    return {sample.repetition: sample for sample in samples if sample.outcome == OK}


def group_samples(samples: Iterable[Sample]) -> list[Group]:
    """Sort samples into groups, in order of first appearance."""
    last: dict[str, Sample] = {}
    for sample in samples:
        last.pop(sample.key, None)  # keeps the order that of the last attempts
        last[sample.key] = sample
    groups = []
    for place, members in grouped(last.values(), place_of).items():
        current = _newest(members)
        groups.append(Group(*place, tuple(current), len(members) - len(current)))
    return groups


def _newest(samples: list[Sample]) -> list[Sample]:
    """Those that share the newest probe and parameters, each cell's newest data and each kernel's newest kernel."""
    newest = setting(samples[-1])
    alike = [sample for sample in samples if setting(sample) == newest]
    data = {_cell(sample): sample.data for sample in alike}
    comparable = [sample for sample in alike if sample.data == data[_cell(sample)]]
    kernels = {sample.kernel.name: sample.kernel.hash for sample in comparable}
    return [sample for sample in comparable if sample.kernel.hash == kernels[sample.kernel.name]]


def _cell(sample: Sample) -> str:
    return json.dumps(sample.cell, sort_keys=True)


def setting(sample: Sample) -> tuple[str, str, str]:
    """Probe and parameters, and the host if seconds are measured."""
    return sample.workload, json.dumps(sample.parameters, sort_keys=True), sample.timed_on

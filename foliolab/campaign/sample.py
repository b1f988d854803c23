# SPDX-License-Identifier: GPL-2.0-only
"""A sample: all that is known about one measurement, as plain data."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from foliolab.arch import Bytes, machine_name
from foliolab.files import digest
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.accel import real_time

OK = "ok"
LOST_HOST = "lost-host"
NOT_APPLICABLE = "not-applicable"

MODEL = "model"
"""The backend that is no kernel."""

_DECISIVE = (
    "experiment", "scale", "parameters", "cell", "variant", "switches", "repetition", "workload", "backend",
)  # fmt: skip
"""What decides a result beside the kernel, the data if there are any, and the host if seconds are measured."""


@dataclass(frozen=True)
class KernelFacts:
    name: str
    """By which it was asked for."""
    version: str
    """As its source says it."""
    release: str
    """As it says itself."""
    hash: str
    """Of its sources and configuration."""

    @classmethod
    def of(cls, kernel: BuiltKernel) -> "KernelFacts":
        return cls(kernel.name, kernel.version, kernel.release, kernel.hash)


@dataclass(frozen=True)
class Sample:
    """One attempt to measure one cell under one variant. Its JSON form is a line of the store."""

    key: str
    """Hash of everything that decides the result, as ``with_key`` makes it."""
    experiment: str
    cell: dict[str, str | int]
    variant: str
    switches: dict[str, int | str]
    arch: str
    page_size: Bytes
    backend: str
    """For instance "qemu-tcg"."""
    scale: str
    repetition: int
    """Counted from 1."""
    outcome: str
    """"ok", or how the attempt ended instead."""
    sentence: str
    """What went wrong; when ok, what was odd and does not count; mostly empty."""
    kernel: KernelFacts
    profile: str
    """Of the kernel: "lab", "debug" ..."""
    workload: str
    """Hash of the probe's sources, its command, and the machine that it runs on."""
    parameters: dict[str, str | int | float | bool]
    metrics: dict[str, int | float]
    """Named as in foliolab.experiment.metrics; empty unless ok."""
    boot: str
    """Which boot it was; its console is consoles/<boot>.log beside the store. Empty if none was needed."""
    recorded: str
    """When, in UTC, ISO 8601."""
    device: str = ""
    """Of which kind the disks were that took time, by its name in experiments/devices.toml or its four numbers; empty
    if they took none."""
    data: str = ""
    """Hash of what the cell works on, where cells of one experiment work on different things."""
    host: str = ""
    """Which machine executed it, or found that it does not apply; empty in samples of before there were several."""
    code: str = ""
    """Hash of our code in the kernel, as far as the experiment depends on it, by foliolab.kernel.code; empty for
    kernels without it."""
    made_with: str = ""
    """Kind of host, QEMU and compiler, in words."""
    took: float = 0.0
    """Seconds on the host, with the boot if it was the first of one."""

    @property
    def timed_on(self) -> str:
        """The host if seconds are those of it; else empty, because hosts do not matter."""
        return self.host if real_time(self.backend) else ""

    @property
    def passed_over(self) -> bool:
        """Whether it did not apply, without a boot: a host may have lacked a program that another one has."""
        return self.outcome == NOT_APPLICABLE and not self.boot

    @property
    def machine(self) -> str:
        return machine_name(self.arch, self.page_size)

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def with_key(sample: Sample) -> Sample:
    """The same with the key that follows from the rest of it."""
    decisive = {name: getattr(sample, name) for name in _DECISIVE} | {"kernel": sample.kernel.hash}
    if sample.data:
        decisive["data"] = sample.data
    if sample.timed_on:
        decisive["host"] = sample.timed_on
    return dataclasses.replace(sample, key=digest([json.dumps(decisive, sort_keys=True)]))

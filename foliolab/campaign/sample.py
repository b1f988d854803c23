# SPDX-License-Identifier: GPL-2.0-only
"""A sample: all that is known about one measurement, as plain data."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_origin

OK = "ok"
LOST_HOST = "lost-host"
NOT_APPLICABLE = "not-applicable"

MODEL = "model"
"""The backend that is no kernel."""


@dataclass(frozen=True)
class Sample:
    """One attempt to measure one cell under one variant. Its JSON form is a line of the store."""

    key: str
    """Hash of everything that decides the result."""
    experiment: str
    cell: dict[str, str | int]
    variant: str
    flavour: str
    """The kernel built for it: "patched" or "unpatched"."""
    switches: dict[str, int | str]
    arch: str
    page_size: int
    """Bytes."""
    backend: str
    """For instance "qemu-tcg"."""
    scale: str
    repetition: int
    """Counted from 1."""
    outcome: str
    """"ok", or how the attempt ended instead."""
    sentence: str
    """What went wrong; empty when ok."""
    kernel: str
    """Hash of the kernel's sources and configuration."""
    profile: str
    """Of the kernel: "lab", "debug" ..."""
    kernel_release: str
    workload: str
    """Hash of the probe's sources, its command, and the machine that it runs on."""
    parameters: dict[str, str | int | float]
    metrics: dict[str, int | float]
    """Named as in foliolab.experiment.metrics; empty unless ok."""
    boot: str
    """Which boot it was; its console is consoles/<boot>.log beside the store. Empty if none was needed."""
    recorded: str
    """When, in UTC, ISO 8601."""
    data: str = ""
    """Hash of what the cell works on, where cells of one experiment work on different things."""

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Sample":
        """The inverse of ``to_json``; TypeError for what is missing or of another type."""
        values = {}
        for field in dataclasses.fields(cls):
            value = data.get(field.name, field.default)
            kind = get_origin(field.type) or field.type
            if not isinstance(value, kind) or isinstance(value, bool):  # type: ignore[arg-type]
                raise TypeError(f"'{field.name}' is not as it should be")
            values[field.name] = value
        return cls(**values)

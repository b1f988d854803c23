# SPDX-License-Identifier: GPL-2.0-only
"""What backends count, and what kind of figure each is, as experiments/metrics.toml says it."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from foliolab.files import EXPERIMENTS
from foliolab.toml import Place, read_toml


class Kind(StrEnum):
    BYTES = "bytes"
    COUNT = "count"
    RATE = "rate"
    """A count for each of something, with what is behind the point."""
    MILLIONS = "millions"
    """A count that is only readable in millions."""
    SHARE = "share"
    """0 to 1."""
    SECONDS = "seconds"
    SPEED = "speed"
    """Bytes a second."""


_NEGLIGIBLE: Mapping[Kind, float] = {
    # 64 pages: a window or two more or less is luck, in work of tens of thousands of pages.
    Kind.COUNT: 64,
    Kind.BYTES: 64 * 4096,
    Kind.RATE: 0.1,
    Kind.SHARE: 0.01,
    # Starting a program and dropping caches vary by so much. Instructions of the same time where each is a nanosecond.
    Kind.SECONDS: 0.01,
    Kind.SPEED: 1 << 20,
    Kind.MILLIONS: 10e6,
}


class Metric(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: Kind
    title: tuple[str, str]
    """Of its column, in two lines; the unit follows."""
    more_is_better: bool = False
    by_instructions: bool = False
    """Whether only a backend that counts the guest's instructions has it."""
    quotient: tuple[str, str] | None = None
    """Time and count that a backend makes it of, where a second is a known number of instructions."""
    sum: tuple[str, ...] = ()
    """Metrics that make it up."""

    @property
    def scales(self) -> bool:
        """Whether a published value has to be multiplied with a scale's factor to be comparable."""
        return self.kind not in (Kind.SHARE, Kind.RATE, Kind.SECONDS, Kind.SPEED)

    @property
    def negligible(self) -> float:
        """A difference below this is of no account, whatever share of the figure it is."""
        return _NEGLIGIBLE[self.kind]


def load_metrics(file: Path = EXPERIMENTS / "metrics.toml") -> dict[str, Metric]:
    """All of them by name, in their order; BadExperiment for a mistake in the file."""
    top = Place(file)
    found = top.named(read_toml(file), Metric)
    for name, metric in found.items():
        top.at(name).at("sum").all_of(metric.sum, found)
        top.at(name).at("quotient").all_of(metric.quotient or (), found)
    return found


METRICS = load_metrics()


def figure(metrics: Mapping[str, float], name: str) -> float | None:
    """A metric by its name, or the sum of those that make it up; None if neither was counted."""
    parts = [metrics.get(part) for part in METRICS[name].sum or (name,)]
    known = [part for part in parts if part is not None]
    return metrics.get(name, sum(known) if len(known) == len(parts) else None)

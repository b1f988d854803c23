# SPDX-License-Identifier: GPL-2.0-only
"""Numbers as the tables print them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from foliolab.experiment.metrics import Kind, Metric


def mib(size_bytes: float) -> str:
    return f"{size_bytes / (1 << 20):,.1f}"


def count(number: float) -> str:
    return f"{number:,.0f}"


def rate(number: float) -> str:
    """Two digits behind the point, or two that say something."""
    return f"{number:,.2f}" if number >= 0.1 or not number else f"{number:.2g}"


def percent(share: float) -> str:
    return f"{share * 100:.1f}"


def seconds(duration: float) -> str:
    return f"{duration:.3f}"


@dataclass(frozen=True)
class Unit:
    """How a kind of metric is printed."""

    name: str
    """As it stands in a title; empty if the title says it."""
    spell: Callable[[float], str]


GIB = Unit("GiB", lambda size_bytes: f"{size_bytes / (1 << 30):.3f}")
UNITS: Mapping[Kind, Unit] = {
    Kind.BYTES: Unit("MiB", mib),
    Kind.COUNT: Unit("", count),
    Kind.RATE: Unit("", rate),
    Kind.MILLIONS: Unit("", lambda number: f"{number / 1e6:,.1f}"),
    Kind.SHARE: Unit("%", percent),
    Kind.SECONDS: Unit("seconds", seconds),
    Kind.SPEED: Unit("MiB/s", mib),
}


def with_unit(metric: Metric) -> str:
    """A metric and its unit."""
    return " ".join(part for part in (*metric.title, UNITS[metric.kind].name) if part)


def off_by(share: float | None) -> str:
    """How far a figure is from another, as a share of that; None if that is 0 and it is not."""
    return "from none" if share is None else f"{share * 100:+.1f} %"


def times(factor: float) -> str:
    return f"{factor:.1f}" if factor < 10 else count(factor)


def change(ratio: float) -> str:
    """A ratio in words: "25.2x less", "same", "+1.3 %"."""
    if ratio <= 0.5:
        return f"{1 / ratio:.1f}x less" if ratio else "nothing"
    if ratio >= 2:
        return f"{ratio:.1f}x more"
    if ratio == 1:
        return "same"
    return f"{(ratio - 1) * 100:+.2f} %"


def scale_factor(factor: float) -> str:
    """1/8 for 0.125, else the plain number."""
    inverse = 1 / factor
    return f"1/{inverse:.0f}" if factor < 1 and abs(inverse - round(inverse)) < 1e-6 else f"{factor:g}"

# SPDX-License-Identifier: GPL-2.0-only
"""Metrics as text that both OpenMetrics and the older text format of Prometheus (0.0.4) allow.

node_exporter's collector of text files reads the older one and takes what else OpenMetrics has, as "# EOF", for
comments. In both, gauges look the same; counters would not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_ESCAPES = {"\\": "\\\\", "\n": "\\n", '"': '\\"'}


@dataclass
class Gauge:
    """A metric that goes up and down, and its values."""

    name: str
    help: str
    values: dict[str, float] = field(default_factory=dict)
    """By labels, as they are written."""

    def set(self, labels: Mapping[str, str], value: float | None) -> None:
        """Give the value for some labels, which have one; None for a value that is not known."""
        if value is not None:
            self.values[_labels(labels)] = value


def metrics_text(gauges: Iterable[Gauge]) -> str:
    """All gauges that have values."""
    lines = []
    for gauge in gauges:
        if gauge.values:
            lines += [f"# HELP {gauge.name} {gauge.help}", f"# TYPE {gauge.name} gauge"]
            lines += [f"{gauge.name}{labels} {value!r}" for labels, value in gauge.values.items()]
    return "\n".join([*lines, "# EOF", ""])


def _labels(labels: Mapping[str, str]) -> str:
    parts = ",".join(f'{name}="{escaped(text)}"' for name, text in labels.items())
    return f"{{{parts}}}" if parts else ""


def escaped(text: str) -> str:
    """The value of a label. Names of files can be any bytes: those that are no UTF-8 are written as \\xNN."""
    valid = text.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return "".join(_ESCAPES.get(character, character) for character in valid)

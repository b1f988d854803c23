# SPDX-License-Identifier: GPL-2.0-only
"""What a guest's kernel and processor count around a program, beside what the program counts itself."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from foliolab.vm.guest import Guest
from foliolab.vm.outcome import JobResult, OutcomeKind

HARDWARE = ("cpu_instructions", "cpu_cycles", "dtlb_misses", "itlb_misses", "llc_misses")
"""Metrics that guest/tools/count.c counts by the processor's own counters."""

NOT_COUNTED = "not-counted"
"""How remarks begin that say what could not be counted."""

_COUNTS = "/tmp/hardware-counts"
_NODES = "/sys/devices/system/node"


@dataclass(frozen=True)
class CountedAround:
    """By metric; what could not be counted is left out."""

    metrics: dict[str, int | float] = field(default_factory=dict)
    not_counted: tuple[str, ...] = ()
    reason: str = ""

    @property
    def remark(self) -> str:
        """What is missing and why, as a sentence; empty if nothing is."""
        return f"{NOT_COUNTED}: {', '.join(self.not_counted)}: {self.reason}." if self.not_counted else ""


NOTHING_BESIDE = CountedAround()


def run_counted(
    guest: Guest, argv: Sequence[str], deadline_seconds: float, *, nodes: bool, hardware: bool
) -> tuple[JobResult, CountedAround]:
    """Run a program to its end, with counts of allocations by node and of hardware where these are wanted."""
    before = _allocations(guest) if nodes else None
    wrapper = ["count", "--to", _COUNTS, "--"] if hardware else []
    result = replace(guest.run([*wrapper, *argv], deadline_seconds), argv=tuple(argv))
    counts = _hardware_counts(guest) if hardware and result.outcome.kind is OutcomeKind.OK else CountedAround()
    if before:
        local, remote = (after - earlier for after, earlier in zip(_allocations(guest), before, strict=True))
        counts.metrics["remote_share"] = remote / (local + remote) if local + remote else 0.0
    return result, counts


def _hardware_counts(guest: Guest) -> CountedAround:
    line = json.loads(guest.run([":read", _COUNTS]).checked().stdout)
    lacking = tuple(name for name in HARDWARE if line[name] is None)
    return CountedAround({name: line[name] for name in HARDWARE if name not in lacking}, lacking, line["reason"])


def _allocations(guest: Guest) -> tuple[int, int]:
    """Calls of the page allocator since boot that gave memory of the processor's own node, and of another one."""
    entries = guest.run([":list", _NODES]).checked().stdout.decode().split()
    nodes = [entry for entry in entries if re.fullmatch(r"node\d+", entry)]
    texts = [guest.run([":read", f"{_NODES}/{node}/numastat"]).checked().stdout.decode() for node in nodes]
    return _sum(texts, "local_node"), _sum(texts, "other_node")


def _sum(texts: list[str], name: str) -> int:
    return sum(int(dict(line.split() for line in text.splitlines())[name]) for text in texts)

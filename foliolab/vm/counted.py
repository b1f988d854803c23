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
READ_COUNTS = (":read", _COUNTS)
"""The job that reads what a counted program came to."""
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
    result = replace(guest.run(counting(argv) if hardware else argv, deadline_seconds), argv=tuple(argv))
    counts = CountedAround()
    if hardware and result.outcome.kind is OutcomeKind.OK:
        counts = hardware_counts(guest.run(READ_COUNTS))
    if before:
        local, remote = (after - earlier for after, earlier in zip(_allocations(guest), before, strict=True))
        counts.metrics["remote_share"] = remote / (local + remote) if local + remote else 0.0
    return result, counts


def counting(argv: Sequence[str]) -> list[str]:
    """The command line that runs a program and has the processor count meanwhile."""
    return ["count", "--to", _COUNTS, "--", *argv]


def counted(argv: Sequence[str]) -> Sequence[str]:
    """The program that a command line of ``counting`` runs; any other as it is."""
    prefix = counting([])
    return argv[len(prefix) :] if list(argv[: len(prefix)]) == prefix else argv


def hardware_counts(result: JobResult) -> CountedAround:
    """What READ_COUNTS came to."""
    line = json.loads(result.checked().stdout)
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

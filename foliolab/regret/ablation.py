# SPDX-License-Identifier: GPL-2.0-only
"""What each mechanism of the adaptive window is worth: regrets with it switched off."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foliolab.model.compiled import WINDOW
from foliolab.progress import Reporter
from foliolab.regret.mechanisms import Mechanism, count_lines, lines_of, without
from foliolab.regret.rows import RegretRow, count, make_rows
from foliolab.regret.suite import FAMILIES, PATTERNS, TRACES, Case, ModelDevice, Suite, TraceCase, cost
from foliolab.regret.summary import Regrets, ours, spreads

WHOLE = "whole policy"
"""In the place of a mechanism: none is off."""
JUDGED = "judged"
"""A further group of cells: of patterns, also in new families, that the window was not designed with."""
_VARIANT = "adaptive"
_MOST_HURT = 3
HURT = 1.005
"""A pattern is hurt that costs at least so many times as much."""


@dataclass(frozen=True)
class Ablation:
    """The regrets of adaptive without a mechanism."""

    mechanism: str
    does: str
    lines: int
    """Of code that the mechanism alone needs; of the whole header for WHOLE."""
    spreads: Mapping[str, Regrets]
    """By group of cells, of those that were asked for."""
    hurt: Mapping[str, float]
    """The patterns and traces that lose most, at most three, and what they cost without the mechanism, in multiples of
    what they cost with it: geometric means of their cells."""

    def to_json(self) -> dict[str, Any]:
        """None stands where no such cells were asked for."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in ("mechanism", "does", "lines")}
        for name, group in (("", PATTERNS), ("families_", FAMILIES), ("traces_", TRACES), ("judged_", JUDGED)):
            of = self.spreads.get(group)
            plain |= {f"{name}mean": of and of.mean, f"{name}worst": of and of.worst}
        return {**plain, "hurt": [{"pattern": pattern, "times": times} for pattern, times in self.hurt.items()]}


def ablate(
    suite: Suite,
    cases: Sequence[Case | TraceCase],
    devices: Sequence[ModelDevice],
    mechanisms: Sequence[Mechanism],
    report: Reporter,
) -> list[Ablation]:
    """The whole policy, and then without each mechanism. ModelError if the header is not one that they can be cut from.

    Only adaptive is simulated anew: the oracle and the rivals stay what they are.
    """
    header = WINDOW.read_text()
    cut = [(mechanism, without(mechanism, header), lines_of(mechanism, header)) for mechanism in mechanisms]
    whole = ours(make_rows(suite, cases, devices, report))
    found = [_ablation(WHOLE, "Everything is on.", count_lines(header), whole, whole)]
    for number, (mechanism, window, lines) in enumerate(cut, 1):
        report.say(f"{number} of {len(cut)}: without {mechanism.name}")
        rows = list(_rows(suite, cases, devices, window, whole, report))
        found.append(_ablation(mechanism.name, mechanism.does, lines, rows, whole))
    return found


def _rows(
    suite: Suite,
    cases: Sequence[Case | TraceCase],
    devices: Sequence[ModelDevice],
    window: str,
    whole: Sequence[RegretRow],
    report: Reporter,
) -> Iterator[RegretRow]:
    """The rows of ``whole`` with another header."""
    before = {row.cell: row for row in whole}
    for _, device, cell, counts in count(suite, cases, devices, report, [_VARIANT], window):
        found = counts[_VARIANT]
        yield replace(
            before[cell],
            cost=cost(found, device),
            read_bytes=found.read_bytes,
            major_faults=found.major_faults,
        )


def _ablation(name: str, does: str, lines: int, rows: Sequence[RegretRow], whole: Sequence[RegretRow]) -> Ablation:
    judged = [row for row in rows if row.judged_only and row.group != TRACES]
    found = {**spreads(rows, lambda row: row.group), **spreads(judged, lambda _: JUDGED)}
    with_it, without_it = (spreads(each, lambda row: row.pattern) for each in (whole, rows))
    times = {pattern: of.mean / with_it[pattern].mean for pattern, of in without_it.items()}
    most = sorted(times, key=lambda pattern: -times[pattern])[:_MOST_HURT]
    return Ablation(name, does, lines, found, {pattern: times[pattern] for pattern in most if times[pattern] >= HURT})

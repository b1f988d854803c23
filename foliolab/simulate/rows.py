# SPDX-License-Identifier: GPL-2.0-only
"""From runs to costs and seconds, and to how they compare with the best fixed window of each cell."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foliolab.device import Device
from foliolab.model.library import Counts
from foliolab.simulate.runs import machines, run
from foliolab.simulate.suite import FAMILIES, PATTERNS, REPORT, REPORTS, TRACE, TRACES, AnyCase, Suite, cost, fixed

HIGH_REGRET = 1.5
GOOD_OFF = 1.1
"""Up to this regret of ``off`` there is nothing to mend..."""
WORSE_THAN_OFF = 1.05
"""... and a cell is lost where a variant costs more than so many times as much."""

ModelCell = tuple[str, int, str, float]
"""Where variants are compared with each other: pattern, ``read_ahead_kb``, device, memory, as a row has them."""


@dataclass(frozen=True)
class RegretRow:
    """A variant in a cell of the model. Costs are in seconds, of which nothing overlaps: they are prices."""

    pattern: str
    """Or a trace or report, with a name that begins with TRACE or REPORT."""
    read_ahead_kb: int
    device: str
    memory: float
    """How many times as large as memory the file is."""
    variant: str
    cost: float
    off_cost: float
    """Of ``off`` in the same cell."""
    oracle_cost: float
    """Of the cheapest fixed window up to ``read_ahead_kb``."""
    oracle_window_kb: int
    seconds: float
    """That the program takes."""
    oracle_seconds: float
    """With the fastest fixed window up to ``read_ahead_kb``, which may be another one."""
    read_bytes: int
    major_faults: int
    judged_only: bool
    family: str = ""
    """Of the pattern, if it is one of the later ones, or of the report."""

    @property
    def cell(self) -> ModelCell:
        return self.pattern, self.read_ahead_kb, self.device, self.memory

    @property
    def group(self) -> str:
        """One of GROUPS."""
        for beginning, group in ((TRACE, TRACES), (REPORT, REPORTS)):
            if self.pattern.startswith(beginning):
                return group
        return FAMILIES if self.family else PATTERNS

    @property
    def regret(self) -> float:
        """What the variant costs, in multiples of the oracle."""
        return self.cost / self.oracle_cost

    @property
    def time_regret(self) -> float:
        """How long the variant takes, in multiples of the fastest fixed window."""
        return self.seconds / self.oracle_seconds

    @property
    def over(self) -> bool:
        """Whether it costs much more than the oracle."""
        return self.regret > HIGH_REGRET

    @property
    def lost(self) -> bool:
        """Whether ``off`` reads well here, and the variant does not."""
        return self.off_cost / self.oracle_cost <= GOOD_OFF and self.cost > WORSE_THAN_OFF * self.off_cost

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "group": self.group, "regret": self.regret, "time_regret": self.time_regret}


def make_rows(suite: Suite, cases: Sequence[AnyCase], devices: Sequence[Device]) -> list[RegretRow]:
    """All variants in all cells of these cases and devices, cell by cell."""
    rows = []
    for case, device, cell, counts in count(suite, cases, devices):
        costs = {variant: cost(found, device) for variant, found in counts.items()}
        times = {variant: found.seconds[device.name] for variant, found in counts.items()}
        window = oracle(suite, costs)
        rows += [
            RegretRow(
                *cell,
                variant=variant,
                cost=costs[variant],
                off_cost=costs["off"],
                oracle_cost=costs[fixed(window)],
                oracle_window_kb=window,
                seconds=times[variant],
                oracle_seconds=times[fixed(oracle(suite, times))],
                judged_only=case.judged_only,
                family=case.family,
                read_bytes=found.read_bytes,
                major_faults=found.major_faults,
            )
            for variant, found in counts.items()
        ]
    return rows


def count(
    suite: Suite,
    cases: Sequence[AnyCase],
    devices: Sequence[Device],
    variants: Collection[str] | None = None,
    window: str = "",
) -> Iterator[tuple[AnyCase, Device, ModelCell, dict[str, Counts]]]:
    """What each variant, or each of ``variants``, does in each cell, with the adaptive window in ``window`` if any."""
    for case, runs in zip(cases, run(suite, cases, devices, variants, window), strict=True):
        for times, read_ahead_kb in suite.places(case):
            for device in devices:
                wanted = machines(suite, case, times, read_ahead_kb, device)
                counts = {name: runs[wanted[name]] for name in wanted if variants is None or name in variants}
                yield case, device, (case.name, read_ahead_kb, device.name, times), counts


def oracle(suite: Suite, costs: dict[str, float]) -> int:
    """The fixed window in KiB that costs least, or takes least time, the smallest of several that do."""
    return min(suite.windows_kb, key=lambda window: (costs[fixed(window)], window))

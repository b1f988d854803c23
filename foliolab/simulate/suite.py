# SPDX-License-Identifier: GPL-2.0-only
"""What is simulated: patterns, memories and ways to read, as model/suite.toml says it, and what that costs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from foliohost.trace import Trace
from foliolab.device import Device
from foliolab.errors import UsageError
from foliolab.experiment.spec import Expectation
from foliolab.files import MODEL
from foliolab.model.library import PAGE_BYTES, RULES, Counts, Pattern
from foliolab.model.reported import Reported
from foliolab.toml import Count, Number, Place, Positive, Text, one_of, read_toml
from foliolab.trace.replay import read_replayable

PAGE_KB = PAGE_BYTES >> 10
COMPARED = ("off", "published", "adaptive")
"""Ways that stand beside each other."""


def fixed(window_kb: int) -> str:
    return f"fixed-{window_kb}"


def cost(counts: Counts, device: Device) -> float:
    """Seconds of waiting and of the device's time, where nothing overlaps: a price.

    A device with a head has a latency for each seek, and what it skips passes like what it reads. Others have one for
    each wait.
    """
    has_head = device.queue_depth == 1
    latencies = counts.seeks if has_head else counts.waits
    pages = counts.pages_read + (counts.pages_skipped if has_head else 0)
    return (
        latencies * device.latency_us / 1e6
        + (counts.requests / device.requests_per_second if device.requests_per_second else 0)
        + pages * PAGE_BYTES / (device.megabytes_per_second * 1e6)
    )


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern, and how much of it."""

    name: Text
    pattern: Pattern
    count: Positive
    """Accesses in one pass."""
    passes: Positive = 1
    then: tuple[Pattern, ...] = ()
    """With which each pass goes on, for as many accesses."""
    judged_only: bool = False
    """Kept apart when the adaptive window was designed: it is only judged by."""
    family: str = ""
    """Of a pattern that was added after the window had been designed; a whole family is judged only, or none of it."""
    file_pages: Count = 0
    """Pages of the file, if it is another than the suite's."""


class ReportCase(Struct, frozen=True, forbid_unknown_fields=True):
    """What users have reported, in one size. A family is of one report, or of several that are alike."""

    name: Text
    """Which begins with REPORT."""
    family: Text
    accesses: Reported
    file_pages: Positive
    reclaimed_pages: Count = 0
    """After each phase."""
    judged_only: bool = False
    """Of another size and seed than what windows may be designed with."""


class Way(Struct, frozen=True, forbid_unknown_fields=True):
    name: Text
    rules: Annotated[str, one_of(RULES)] = ""
    """Of the model, if they have another name."""
    window_kb: Count = 0
    """That it reads at most, if that is less than ``read_ahead_kb``."""
    request: Literal["", "told", "measured"] = ""
    """How it knows what a request costs: told by an administrator, measured as our kernel does, or not at all."""
    title: str = ""
    """In documents; what has none is not in their table."""


GROUPS = PATTERNS, FAMILIES, TRACES, REPORTS = "patterns", "families", "traces", "reports"
"""Of cells whose figures stand apart: the first patterns, later ones of other families, what programs touched, and what
users have reported."""
FIGURES = ("mean", "worst", "judged_mean", "time_mean", "time_worst", "time_judged_mean")
"""What the regrets of a variant in a group come to, by price and by time: geometric means, the last one of what is
judged only."""
TRACE = "trace:"
"""How names of traces begin where those of patterns stand."""
REPORT = "report:"
"""The same of reports."""


@dataclass(frozen=True)
class TraceCase:
    name: str
    trace: Trace

    @property
    def file_pages(self) -> int:
        return self.trace.pages

    @property
    def judged_only(self) -> bool:
        return self.trace.judged_only

    @property
    def family(self) -> str:
        """None: traces are a group of their own."""
        return ""


AnyCase = Case | ReportCase | TraceCase


class Suite(Struct, frozen=True, forbid_unknown_fields=True):
    cases: Annotated[tuple[Case, ...], Meta(min_length=1)]
    reports: tuple[ReportCase, ...]
    ways: tuple[Way, ...]
    """Besides fixed windows."""
    file_pages: Positive
    """Of patterns that have no file of their own."""
    times_memory: Annotated[tuple[Positive | Number, ...], Meta(min_length=1)]
    """How many times as large as memory the file is."""
    read_ahead_kb: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    windows_kb: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    """Fixed windows to compare with."""
    expect: tuple[Expectation, ...]
    """Of cells that name a group of GROUPS, and of FIGURES as metrics."""

    def pages_of(self, case: AnyCase) -> int:
        """Pages of the file, or of all files."""
        return case.file_pages or self.file_pages

    def places(self, case: AnyCase) -> list[tuple[float, int]]:
        """Where variants are compared: how many times as large as memory the file is, and ``read_ahead_kb``.

        A memory that does not hold two such windows is left out: some files are small.
        """
        return [
            (times, read_ahead_kb)
            for times, read_ahead_kb in product(self.times_memory, self.read_ahead_kb)
            if memory_pages(self.pages_of(case), times) >= 2 * read_ahead_kb // PAGE_KB
        ]


@cache
def load_suite(file: Path = MODEL / "suite.toml") -> Suite:
    """All that is compared; BadExperiment for a mistake in the file."""
    top = Place(file)
    suite = top.convert(read_toml(file), Suite)
    for key, names in (
        ("cases", [case.name for case in suite.cases]),
        ("reports", [case.name for case in suite.reports]),
        ("ways", [*(way.name for way in suite.ways), *map(fixed, suite.windows_kb)]),
    ):
        for name, times in Counter(names).items():
            if times > 1:
                top.at(key).fail(f"has the name '{name}' more than once")
    for number, way in enumerate(suite.ways):
        if not way.rules:
            top.at(f"ways[{number}].name").all_of([way.name], RULES)
    for number, case in enumerate(suite.reports):
        if not case.name.startswith(REPORT):
            top.at(f"reports[{number}].name").fail(f"does not begin with '{REPORT}'")
    known = [way.name for way in suite.ways]
    for name in {*COMPARED} - {*known}:
        top.at("ways").fail(f"has no '{name}'")
    for number, each in enumerate(suite.expect):
        place = top.at(f"expect[{number}]")
        place.at("cell").all_of(list(each.cell), ["group"])
        place.at("cell.group").all_of(list(each.cell.values()), GROUPS)
        each.check(place, known, FIGURES)
        for key in ("scales", "where", "machines"):
            if getattr(each, key):
                place.at(key).fail("is about experiments only")
        place.at("relative_to").all_of([each.relative_to] if each.relative_to else [], known)
    return suite


def memory_pages(file_pages: int, times: float) -> int:
    """Of a memory that the file is so many times as large as. More than the file would change nothing."""
    return min(int(file_pages / times), file_pages)


def trace_cases(paths: Iterable[Path]) -> list[TraceCase]:
    """Traces of these files, named for them. BadTrace for what is none, UsageError for two of the same name."""
    cases: dict[str, TraceCase] = {}
    for path in paths:
        name = TRACE + path.stem
        if name in cases:
            raise UsageError(f"There are two traces with the name '{path.stem}'; {path} is the second.")
        cases[name] = TraceCase(name, read_replayable(path))
    return list(cases.values())

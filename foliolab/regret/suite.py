# SPDX-License-Identifier: GPL-2.0-only
"""What is simulated: patterns, memories, windows and devices, as data."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from foliolab.errors import UsageError
from foliolab.model.library import PAGE_BYTES, Pattern
from foliolab.regret.cost import Device
from foliolab.trace.format import Trace
from foliolab.trace.replay import read_replayable

PAGE_KB = PAGE_BYTES >> 10

_FILE_PAGES = 250000
"""No power of two: few files are."""
_LEAST_SHARE = 0.01
"""Of the pages that a stride touches, however few it takes once through the file."""


@dataclass(frozen=True)
class Case:
    """A pattern, and how much of it."""

    name: str
    pattern: Pattern
    count: int
    """Accesses in one pass."""
    passes: int = 1
    then: tuple[Pattern, ...] = ()
    """With which each pass goes on, for as many accesses."""
    judged_only: bool = False
    """Kept apart when the adaptive window was designed: it is only judged by."""
    family: str = ""
    """Of a pattern that was added after the window had been designed; a whole family is judged only, or none of it."""
    file_pages: int = 0
    """Pages of the file, if it is another than the suite's."""


TRACE = "trace:"
"""How names of traces begin where those of patterns stand."""


@dataclass(frozen=True)
class TraceCase:
    """What a program touched."""

    name: str
    trace: Trace

    @property
    def file_pages(self) -> int:
        """Of all files of the trace."""
        return sum(file.pages for file in self.trace.files)

    @property
    def judged_only(self) -> bool:
        return self.trace.judged_only

    @property
    def family(self) -> str:
        """None: traces are a group of their own."""
        return ""


@dataclass(frozen=True)
class Suite:
    cases: tuple[Case, ...]
    devices: tuple[Device, ...]
    file_pages: int
    """Of patterns that have no file of their own."""
    times_memory: tuple[float, ...]
    """How many times as large as memory the file is."""
    read_ahead_kb: tuple[int, ...]
    windows_kb: tuple[int, ...]
    """Fixed windows to compare with."""

    def pages_of(self, case: Case | TraceCase) -> int:
        """Pages of the file, or of all files."""
        return case.file_pages if isinstance(case, TraceCase) else case.file_pages or self.file_pages

    def places(self, case: Case | TraceCase) -> list[tuple[float, int]]:
        """Where variants are compared: how many times as large as memory the file is, and ``read_ahead_kb``.

        A memory that does not hold two such windows is left out: some files are small.
        """
        return [
            (times, read_ahead_kb)
            for times, read_ahead_kb in product(self.times_memory, self.read_ahead_kb)
            if memory_pages(self.pages_of(case), times) >= 2 * read_ahead_kb // PAGE_KB
        ]


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


def _random() -> Iterator[Case]:
    for share, judged in ((0.001, False), (0.01, False), (0.1, False), (0.5, True), (1.0, False)):
        yield Case(f"random-{share * 100:g}%", Pattern("random"), _touches(share), judged_only=judged)
    yield Case("random-passes", Pattern("random"), _touches(0.01), passes=5, judged_only=True)
    yield Case("dense-tenth", Pattern("random", region=0.1), _touches(0.2))
    yield Case("dense-third", Pattern("random", region=0.3), _touches(0.6), judged_only=True)
    yield Case("zipf", Pattern("zipf"), _touches(0.02))
    yield Case("zipf-long", Pattern("zipf"), _touches(0.5), judged_only=True)
    yield Case("btree", Pattern("btree"), _touches(0.15))


def _strides() -> Iterator[Case]:
    for stride in (2, 3, 5, 7, 15, 16, 17, 31, 33, 63, 65, 127, 1021, 1025, 2053, 4099):
        pattern, judged = Pattern("stride", stride=stride), stride in (5, 17, 63, 1025)
        yield Case(f"stride-{stride}", pattern, _touches(max(_LEAST_SHARE, 1 / stride)), judged_only=judged)
    # The same pages again and again: read one at a time, all of them fit where the gaps between them do not.
    for stride in (5, 16, 31, 40):
        yield Case(f"sweeps-{stride}", Pattern("stride", stride=stride), _touches(1 / stride), passes=4)
    yield Case("drift", Pattern("drift", stride=200), _touches(0.01))
    yield Case("drift-40", Pattern("drift", stride=40), _touches(0.05), judged_only=True)


def _runs() -> Iterator[Case]:
    yield Case("sequential", Pattern("sequential"), _FILE_PAGES)
    yield Case("sequential-1%", Pattern("sequential"), _touches(0.01))
    yield Case("passes-10%", Pattern("sequential"), _touches(0.1), passes=4)
    yield Case("passes-all", Pattern("sequential"), _FILE_PAGES, passes=3)
    yield Case("reverse", Pattern("reverse"), _FILE_PAGES)
    for streams in (2, 4, 8, 16):
        pattern = Pattern("streams", streams=streams)
        yield Case(f"streams-{streams}", pattern, _FILE_PAGES, judged_only=streams == 4)
    yield Case("pingpong", Pattern("pingpong"), _FILE_PAGES)


def _objects() -> Iterator[Case]:
    for pages in (2, 6, 24, 64, 256):
        yield Case(f"objects-{pages}", Pattern("objects", object=pages), _touches(0.2))
    yield Case("objects-12", Pattern("objects", object=12), _touches(0.2), judged_only=True)
    for pages, order in ((3, "backward"), (24, "backward"), (24, "shuffled"), (96, "shuffled")):
        pattern = Pattern("objects", order=order, object=pages)
        yield Case(f"objects-{pages}-{order}", pattern, _touches(0.2), judged_only=pages != 24)


def _mixtures() -> Iterator[Case]:
    yield Case("scan-random", Pattern("scan-random"), _touches(0.2))
    yield Case("scan-random-long", Pattern("scan-random"), _FILE_PAGES, judged_only=True)
    yield Case("phases", Pattern("phases"), _touches(0.3))
    # Data that a program leaves for others, and comes back to: either fits into a third of the file, not both.
    first, second = (Pattern("random", region=0.2, seed=seed) for seed in (1, 2))
    yield Case("come-back", first, _touches(0.4), passes=3, then=(second,))
    # One area after the other, little of each.
    areas = [Pattern("random", region=0.1, seed=seed) for seed in range(1, 9)]
    yield Case("areas", areas[0], _touches(0.01), passes=4, then=tuple(areas[1:]))


def _tuned_families() -> Iterator[Case]:
    """Patterns of other kinds, with files and seeds of their own; so are those of the judged families."""

    def case(family: str, name: str, pattern: Pattern, pages: int, share: float, passes: int = 1) -> Case:
        """With so many accesses in a pass, as a share of the file's pages."""
        return Case(name, pattern, int(share * pages), passes, family=family, file_pages=pages)

    yield case("streams", "streams-64", Pattern("streams", streams=64), 131072, 1)
    yield case("streams", "streams-256", Pattern("streams", streams=256), 250000, 1)
    yield case("odd-objects", "objects-20", Pattern("objects", object=20, seed=2), 131072, 0.3)
    yield case("odd-objects", "objects-50", Pattern("objects", object=50, seed=3), 90001, 0.5)
    shuffled = Pattern("objects", order="shuffled", object=20, seed=4)
    yield case("odd-objects", "objects-20-shuffled", shuffled, 90001, 0.4)
    yield case("odd-objects", "objects-50-shuffled", replace(shuffled, object=50, seed=5), 250000, 0.2)
    yield case("odd-objects", "blobs", Pattern("blobs", object=100, seed=6), 250000, 0.2)
    yield case("odd-objects", "blobs-shuffled", Pattern("blobs", order="shuffled", object=100, seed=7), 131072, 0.4)
    yield case("merges", "merge", Pattern("merge", streams=5, burst=4, seed=8), 250000, 0.5)
    yield case("merges", "merge-few-look-ups", Pattern("merge", streams=5, burst=32, seed=9), 131072, 0.7)
    yield case("merges", "merge-many-look-ups", Pattern("merge", streams=5, burst=1, seed=10), 90001, 0.7)
    for seed, pages in enumerate((300, 2000, 20000), 11):
        small = f"small-{pages}"
        yield case("small-files", f"{small}-random", Pattern("random", seed=seed), pages, 1)
        yield case("small-files", f"{small}-sequential", Pattern("sequential"), pages, 1, passes=3)
        yield case("small-files", f"{small}-zipf", Pattern("zipf", seed=seed), pages, 2)
        yield case("small-files", f"{small}-objects", Pattern("objects", object=7, seed=seed), pages, 0.5)


def _judged_families() -> Iterator[Case]:
    def case(family: str, name: str, pattern: Pattern, pages: int, share: float) -> Case:
        """With so many accesses, as a share of the file's pages."""
        return Case(name, pattern, int(share * pages), judged_only=True, family=family, file_pages=pages)

    yield case("walks", "walk-8", Pattern("walk", stride=8, seed=21), 131072, 0.3)
    yield case("walks", "walk-60", Pattern("walk", stride=60, seed=22), 250000, 0.2)
    yield case("walks", "walk-500", Pattern("walk", stride=500, seed=23), 90001, 0.5)
    yield case("walks", "walk-4000", Pattern("walk", stride=4000, seed=24), 250000, 0.1)
    yield case("hot-spots", "hot-spots-64", Pattern("hot-spots", object=64, burst=100, seed=25), 90001, 0.5)
    yield case("hot-spots", "hot-spots-500", Pattern("hot-spots", object=500, burst=1000, seed=26), 250000, 0.3)
    yield case("hot-spots", "hot-spots-4000", Pattern("hot-spots", object=4000, burst=400, seed=27), 131072, 0.4)
    yield case("descents", "descent-4", Pattern("btree-scan", object=4, seed=28), 250000, 0.2)
    yield case("descents", "descent-40", Pattern("btree-scan", object=40, seed=29), 90001, 0.5)
    yield case("descents", "descent-300", Pattern("btree-scan", object=300, seed=30), 131072, 0.5)
    scanners = Pattern("scanners", streams=3)
    yield case("threads", "scanners-3", replace(scanners, burst=8, seed=31), 250000, 0.6)
    yield case("threads", "scanners-3-turns", replace(scanners, burst=200, seed=32), 131072, 0.7)
    beside = Pattern("scan-readers", streams=2, object=1)
    yield case("threads", "scan-beside-random", replace(beside, burst=16, seed=33), 131072, 0.4)
    yield case("threads", "scan-beside-3", replace(beside, streams=4, object=13, burst=5, seed=34), 250000, 0.4)
    readers = Pattern("readers", streams=2, object=17)
    yield case("threads", "readers-2", replace(readers, burst=6, seed=35), 90001, 0.6)
    yield case("threads", "readers-6", replace(readers, streams=6, object=70, burst=40, seed=36), 250000, 0.3)


def _touches(share: float) -> int:
    return int(share * _FILE_PAGES)


SUITE = Suite(
    cases=(*_random(), *_strides(), *_runs(), *_objects(), *_mixtures(), *_tuned_families(), *_judged_families()),
    devices=(
        Device(
            "disk",
            wait=0,
            request=0.1e-3,
            seek=8e-3,
            reads_skipped=True,
            bytes_per_second=150e6,
            request_kb=1024,
        ),
        Device("cloud", wait=0.5e-3, request=0.02e-3, bytes_per_second=250e6),
        Device("nvme", wait=60e-6, request=1e-6, bytes_per_second=2e9),
    ),
    file_pages=_FILE_PAGES,
    times_memory=(0.5, 1, 1.2, 3, 20),
    read_ahead_kb=(128, 4096, 8192),
    windows_kb=tuple(PAGE_KB << doubled for doubled in range(12)),
)

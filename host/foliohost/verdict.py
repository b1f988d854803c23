# SPDX-License-Identifier: GPL-2.0-only
"""What an observation comes to: how much is read for each byte used, and whether that is too much.

Nothing here looks at the machine. A page counts as used when it came into a page table, which is too often: a fault
maps cached neighbours along. So what was read for each byte used lies between two bounds, ``least`` and ``most``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from foliohost.estimates import touched
from foliohost.observation import FileSeen, Observation
from foliohost.pages import AROUND_PAGES
from foliohost.processes import PAGE_BYTES
from foliohost.shares import LITTLE_BYTES, FileShare, mapped_reads, share_out
from foliohost.sizes import size

FEW_FAULTS = 16
_WASTE = 1.5
_CLEAR_WASTE = 4
_DOUBT = 8
_STREAM = 4
"""Where so many windows were read for each major fault, most of it was read ahead of a stream."""
_LEAST_WINDOW_PAGES = 4
_ALONE = 1.25
"""Pages read for each wait, at most, where pages are read alone."""
_RUN = 8
"""Pages that lie together in a block where a program scans."""
_IN_MEMORY = 0.9
"""Of a file, the part that is cached where it fits."""
_EVICTED = 0.1
"""Of the pages read, the part that may have left memory again where the file fits."""
_MOSTLY = 0.8
SMALL_WINDOW_KB = 16
"""The window that is proposed: some neighbours, at what a single page costs on an SSD."""


class DiagnosisKind(Enum):
    NOTHING_WRONG = "nothing-wrong"
    READS_TOO_MUCH = "reads-too-much"
    READS_TOO_LITTLE = "reads-too-little"
    UNCERTAIN = "uncertain"
    FITS = "fits-in-memory"


@dataclass(frozen=True)
class Diagnosis:
    kind: DiagnosisKind
    sentence: str
    read_bytes: int
    """Of mapped files, by the processes in question."""
    used_least: int
    used_most: int
    places: int
    """Blocks of 64 KiB of data files with a touch, or major faults if these are more."""
    major_faults: int
    files: tuple[FileShare, ...]
    """Those that anything was read or mapped of, the one that was read most first."""

    @property
    def least(self) -> float | None:
        """Bytes read for each byte used, at least; None if nothing was used."""
        return self.read_bytes / self.used_most if self.used_most else None

    @property
    def most(self) -> float | None:
        return self.read_bytes / self.used_least if self.used_least else None


def judge(seen: Observation) -> Diagnosis:
    page = seen.page_bytes
    files = tuple(share_out(seen))
    data = [file for file in files if not file.seen.text]
    text_bytes = sum(file.read_bytes or 0 for file in files if file.seen.text)
    read = max(0, mapped_reads(seen, files) - text_bytes)
    unseen = seen.unseen
    places = max(sum(file.seen.places for file in data) + unseen.major_faults, seen.counted.major_faults)
    used_most = sum(file.used_most for file in data)
    used_most += (unseen.major_faults + unseen.minor_faults * AROUND_PAGES) * page
    used_most = max(used_most, min(places, seen.counted.major_faults) * page)
    used_least = min(places * page, used_most)
    draft = Diagnosis(
        DiagnosisKind.NOTHING_WRONG,
        "",
        read,
        used_least,
        used_most,
        places,
        seen.counted.major_faults,
        files,
    )
    kind, sentence = _decide(seen, draft, data)
    if kind in (DiagnosisKind.READS_TOO_MUCH, DiagnosisKind.UNCERTAIN):
        fitting = [file for file in data if fits(file)]
        if sum(file.read_bytes or 0 for file in fitting) >= _MOSTLY * sum(file.read_bytes or 0 for file in data) > 0:
            kind, sentence = DiagnosisKind.FITS, _ends(seen, draft, fitting)
    return replace(draft, kind=kind, sentence=sentence)


def fits(file: FileShare) -> bool:
    """Whether nearly all of a file is cached by now, and stays: such reads end by themselves."""
    seen, read_bytes = file.seen, file.read_bytes or 0
    if not seen.resident_bytes or seen.text:
        return False
    stays = seen.evicted_pages * PAGE_BYTES <= _EVICTED * read_bytes and read_bytes <= (1 + _EVICTED) * seen.size_bytes
    return stays and seen.resident_bytes >= _IN_MEMORY * seen.size_bytes


def waits_for(verdict: Diagnosis, file: FileShare) -> float:
    """Major faults of a file: as traced, or as large a share of all as it has of what was read."""
    if file.seen.major_faults is not None:
        return file.seen.major_faults
    read = sum(other.read_bytes or 0 for other in verdict.files)
    return verdict.major_faults * (file.read_bytes or 0) / read if read else 0.0


def _ends(seen: Observation, draft: Diagnosis, files: Sequence[FileShare]) -> str:
    """That nothing is to be cured where files fit, and what a cure would do."""
    file = max(files, key=lambda each: each.read_bytes or 0)
    part = min(1.0, (file.seen.resident_bytes or 0) / file.seen.size_bytes)
    words = f"Nothing to cure: {file.seen.path} is {part:.0%} cached by now, so these reads end by themselves."
    window_pages, small_pages = (kib * 1024 // seen.page_bytes for kib in (file.seen.window_kb, SMALL_WINDOW_KB))
    waits = waits_for(draft, file)
    small = touched(file, window_pages, waits).load(small_pages).waits
    if small > 1.1 * waits:
        words += f" A window of {SMALL_WINDOW_KB} KiB would wait about {small:,.0f} times instead of {waits:,.0f}."
    return words


def _decide(seen: Observation, draft: Diagnosis, data: Sequence[FileShare]) -> tuple[DiagnosisKind, str]:
    counted, read = seen.counted, draft.read_bytes
    if counted.read_bytes < LITTLE_BYTES:
        return DiagnosisKind.NOTHING_WRONG, _little(seen)
    if read < LITTLE_BYTES or read < counted.read_bytes / 4:
        return DiagnosisKind.NOTHING_WRONG, (
            f"Nothing wrong with mapped data: of {size(counted.read_bytes)} that were read, {size(read)} were for it."
        )
    majors = counted.major_faults
    window = max((file.seen.window_kb for file in data), default=0) << 10
    single = seen.page_bytes * 2
    hinted = [file for file in data if file.seen.hint == "random"]
    alone = [file for file in data if not file.seen.hint and read_alone(seen, file.seen)]
    for why, waited in (("a hint for random access", hinted), ("a page for each miss, without a hint", alone)):
        if waited and majors > 1000 and read <= majors * single and _runs(waited):
            return DiagnosisKind.READS_TOO_LITTLE, (
                f"Too little is read at once: {why}, and {majors:,} waits for {size(read)} that lie together."
            )
    if majors < FEW_FAULTS:
        return (
            DiagnosisKind.NOTHING_WRONG,
            f"Nothing wrong: for {size(read)} of mapped files, the program had to wait {majors:,} times.",
        )
    if read > majors * max(_STREAM * window, LITTLE_BYTES):
        return DiagnosisKind.NOTHING_WRONG, (
            f"Nothing wrong: {size(read)} of mapped files were read, most of it ahead of streams;"
            f" the program had to wait {majors:,} times."
        )
    least, most = draft.least or 0, draft.most or 0
    if least >= _WASTE and most >= _CLEAR_WASTE:
        return DiagnosisKind.READS_TOO_MUCH, (
            f"Too much is read: {_between(least, most)} bytes of mapped files for each byte used,"
            f" {size(read)} in {seen.seconds:.1f} s."
        )
    if most >= _DOUBT and least >= 0.5:
        return DiagnosisKind.UNCERTAIN, (
            f"Perhaps too much is read: {_between(least, most)} bytes for each byte used."
            " Neighbours that faults map along hide which pages were touched."
        )
    return (
        DiagnosisKind.NOTHING_WRONG,
        f"Nothing wrong: {_between(least, most)} bytes of mapped files were read for each byte used.",
    )


def _little(seen: Observation) -> str:
    counted = seen.counted
    if not counted.read_bytes:
        return f"Nothing wrong: nothing was read in {seen.seconds:.1f} s."
    read = f"{size(counted.read_bytes)} were read in {seen.seconds:.1f} s"
    if counted.major_faults < FEW_FAULTS:
        return f"Nothing wrong: {read}."
    return f"Nothing wrong so far: {read}, too little to judge by; --seconds N looks longer."


def read_alone(seen: Observation, file: FileSeen) -> bool:
    """Whether most waits read one page of this file, where a window would have read more.

    The limits leave no other mixture of reads: of windows and of pages whose neighbours were cached, for which half
    would not be fresh; or of windows and of pages from elsewhere, for which the pages of this file would be less than
    half of the waits.
    """
    waits, pages = seen.counted.major_faults, file.cached_pages
    small = file.window_kb << 10 < _LEAST_WINDOW_PAGES * seen.page_bytes
    if pages is None or small or seen.counted.read_bytes > _ALONE * waits * seen.page_bytes:
        return False
    return waits / 2 <= pages <= _ALONE * waits and 2 * file.fresh_pages >= pages


def _runs(files: Sequence[FileShare]) -> bool:
    pages = sum(file.seen.mapped_pages for file in files)
    return pages >= _RUN * max(1, sum(file.seen.places for file in files))


MISS_LIMIT = 100
"""MMAP_LOTSAMISS of mm/filemap.c."""


class MissCounter(Enum):
    """What can be told of the kernel's counter of misses, which it shows to nobody, by what misses read.

    Each open file has one. A miss of mapped access adds to it, a hit takes from it, and above its limit a miss without
    a hint reads its page alone.
    """

    OVER_LIMIT = "over-limit"
    """Misses read single pages, also where windows would pay."""
    HELD_DOWN = "held-down"
    """Hits keep it below, and misses go on reading windows."""


def miss_counter(seen: Observation, verdict: Diagnosis, file: FileShare) -> MissCounter | None:
    """Where the counter of a file is, by what its misses read; None if that does not tell."""
    data = file.seen
    if data.text or data.hint or not data.hint_known or seen.adaptive or seen.counted.major_faults <= MISS_LIMIT:
        return None
    if read_alone(seen, data):
        return MissCounter.OVER_LIMIT
    if data.come_and_gone or verdict.kind is not DiagnosisKind.READS_TOO_MUCH:
        return None
    if _windows_of_misses(seen, file) > MISS_LIMIT * len(data.processes):
        return MissCounter.HELD_DOWN
    return None


def _windows_of_misses(seen: Observation, file: FileShare) -> int:
    """How many misses of a file have read windows, at least; 0 if waits read less than half of one on average."""
    window, waits = file.seen.window_kb << 10, seen.counted.major_faults
    read = file.read_bytes or 0
    return min(waits, read // window) if window and 2 * read >= waits * window else 0


def _between(least: float, most: float) -> str:
    return f"{least:.1f}" if most < 1.1 * least else f"{_figure(least)} to {_figure(most)}"


def _figure(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"

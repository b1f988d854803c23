# SPDX-License-Identifier: GPL-2.0-only
"""The names under which every backend reports what it counted, and what kind of figure each is."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
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


@dataclass(frozen=True)
class Metric:
    name: str
    kind: Kind
    title: tuple[str, str]
    """Of its column, in two lines; the unit follows."""
    more_is_better: bool = False
    by_instructions: bool = False
    """Whether only a backend that counts the guest's instructions has it."""

    @property
    def scales(self) -> bool:
        """Whether a published value has to be multiplied with a scale's factor to be comparable."""
        return self.kind not in (Kind.SHARE, Kind.RATE, Kind.SECONDS, Kind.SPEED)

    @property
    def negligible(self) -> float:
        """A difference below this is of no account, whatever share of the figure it is."""
        return _NEGLIGIBLE[self.kind]


def _folio_row(name: str) -> Metric:
    """A row of the folio table: the share of mapped file memory that is mapped so."""
    _, way, alignment, size = name.split("_")
    return Metric(name, Kind.SHARE, (f"{way} {alignment}", size.replace("kb", "kB")))


_ALL = (
    # What the file's block device read, and what the guest's kernel read from all block devices.
    Metric("read_bytes", Kind.BYTES, ("read", "")),
    Metric("pgpgin_bytes", Kind.BYTES, ("paged in", "")),
    # The distinct pages touched: no kernel can read less.
    Metric("floor_bytes", Kind.BYTES, ("floor", "")),
    # That the block device finished.
    Metric("read_requests", Kind.COUNT, ("read", "requests")),
    # What was read, and 128 KiB for each request: what both cost together on devices of today.
    Metric("price_bytes", Kind.BYTES, ("price", "")),
    Metric("major_faults", Kind.COUNT, ("major", "faults")),
    Metric("minor_faults", Kind.COUNT, ("minor", "faults")),
    # Both: a major fault that readahead saves is a minor one.
    Metric("faults", Kind.COUNT, ("", "faults")),
    # Of the program meanwhile: all instructions of a fault, but not the wait for its page.
    Metric("cpu_seconds", Kind.SECONDS, ("CPU", "")),
    Metric("instructions_per_fault", Kind.RATE, ("instructions", "per fault"), by_instructions=True),
    # By the guest's clock.
    Metric("seconds", Kind.SECONDS, ("", "")),
    # That the guest executed meanwhile.
    Metric("instructions", Kind.MILLIONS, ("million", "instructions"), by_instructions=True),
    # The share of the touched text that is mapped in naturally aligned, physically contiguous blocks of the size
    # that is one TLB entry on arm64: 64 KiB with 4 KiB pages, 2 MiB with larger ones.
    Metric("contpte_share", Kind.SHARE, ("contpte", ""), more_is_better=True),
    # That the touched text takes: with blocks that the hardware can coalesce, and with one for each page.
    Metric("tlb_entries", Kind.COUNT, ("TLB", "entries")),
    Metric("tlb_entries_uncoalesced", Kind.COUNT, ("TLB entries", "uncoalesced")),
    # Distinct pages of text that were touched; all file memory that was mapped; growth of the page cache.
    Metric("touched_bytes", Kind.BYTES, ("touched", "")),
    Metric("mapped_bytes", Kind.BYTES, ("mapped", "")),
    Metric("cached_bytes", Kind.BYTES, ("cached", "")),
    # Of the control group.
    Metric("peak_memory_bytes", Kind.BYTES, ("peak memory", "")),
    # Pages that had to be read, or swapped in, again soon after they were reclaimed; of those of files, the ones that
    # became active at once, and the ones that had been before.
    Metric("refaults_file", Kind.COUNT, ("refaults", "file")),
    Metric("refaults_anon", Kind.COUNT, ("refaults", "anonymous")),
    Metric("activated_file", Kind.COUNT, ("activated", "file")),
    Metric("restored_file", Kind.COUNT, ("restored", "file")),
    # Pages that came from swap, and that went there.
    Metric("swap_ins", Kind.COUNT, ("swap-ins", "")),
    Metric("swap_outs", Kind.COUNT, ("swap-outs", "")),
    # Of a program that counts what it reads itself: how much, and how many refaults each took.
    Metric("program_reads", Kind.COUNT, ("", "reads"), more_is_better=True),
    Metric("refaults_per_read", Kind.RATE, ("refaults", "per read")),
    Metric("bytes_per_second", Kind.SPEED, ("bandwidth", ""), more_is_better=True),
    # The share of the control group's file pages in its two youngest generations, which reclaim does not look at.
    Metric("young_share", Kind.SHARE, ("in young", "generations")),
    # Large folios that readahead got, and did not get.
    Metric("file_alloc", Kind.COUNT, ("folios", "allocated")),
    Metric("file_fallback", Kind.COUNT, ("folios", "fallen back")),
    # The share of free memory in blocks that make such a folio, before.
    Metric("free_in_large_blocks", Kind.SHARE, ("free in", "large blocks"), more_is_better=True),
    # Of calls that change protection: for each page-table entry that they went over, and for each one used after.
    Metric("instructions_per_pte", Kind.RATE, ("instructions", "per PTE"), by_instructions=True),
    Metric("instructions_per_touch", Kind.RATE, ("instructions", "per touch"), by_instructions=True),
    Metric("ptes_visited", Kind.COUNT, ("PTEs", "visited")),
    Metric("ptes_touched", Kind.COUNT, ("PTEs", "touched")),
    # The time that they would have taken if nothing had interrupted them, and the same of the uses.
    Metric("undisturbed_seconds", Kind.SECONDS, ("undisturbed", "")),
    Metric("undisturbed_touch_seconds", Kind.SECONDS, ("undisturbed touching", "")),
    # Operations by which CPUs are told to forget translations, for each MiB that a call changes.
    Metric("tlb_flushes_per_mib", Kind.RATE, ("TLB flushes", "per MiB")),
    # Entries that were changed together, or passed over: how many such batches, their mean length, and the share
    # of all entries that were in one.
    Metric("batches", Kind.COUNT, ("", "batches")),
    Metric("batch_length", Kind.RATE, ("PTEs", "a batch"), more_is_better=True),
    Metric("batched_share", Kind.SHARE, ("in batches", ""), more_is_better=True),
    # Of a workload: pages that it used, or programs that it ran, which is the same for every kernel.
    Metric("work", Kind.COUNT, ("units", "of work")),
    Metric("instructions_per_unit", Kind.RATE, ("instructions", "per unit"), by_instructions=True),
    # That reclaim looked at, and took.
    Metric("scanned_pages", Kind.COUNT, ("pages", "scanned")),
    Metric("reclaimed_pages", Kind.COUNT, ("pages", "reclaimed")),
    *(_folio_row(f"file_thp_aligned_{size}kb") for size in (16, 32, 64, 128)),
    *(_folio_row(f"file_thp_unaligned_{size}kb") for size in (16, 128)),
    _folio_row("file_cont_aligned_64kb"),
)

METRICS = {metric.name: metric for metric in _ALL}

PER_ENTRY = {
    "instructions_per_pte": ("undisturbed_seconds", "ptes_visited"),
    "instructions_per_fault": ("cpu_seconds", "faults"),
    "instructions_per_unit": ("cpu_seconds", "work"),
    "instructions_per_touch": ("undisturbed_touch_seconds", "ptes_touched"),
}
"""Metrics that a backend makes of others where a second is a known number of instructions: time over count."""

_SUMS = {"faults": ("major_faults", "minor_faults")}


def figure(metrics: Mapping[str, float], name: str) -> float | None:
    """A metric by its name, or the sum of those that make it up; None if neither was counted."""
    parts = [metrics.get(part) for part in _SUMS.get(name, (name,))]
    known = [part for part in parts if part is not None]
    return metrics.get(name, sum(known) if len(known) == len(parts) else None)

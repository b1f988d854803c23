# SPDX-License-Identifier: GPL-2.0-only
"""What is said of a run of the user's program, as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foliolab.campaign.sample import KernelFacts
from foliolab.program.cells import ProgramCell
from foliolab.vm.failure import JobResult

_EVENTS = {
    "major_faults": "pgmajfault",
    "refaults_file": "workingset_refault_file",
    "refaults_anon": "workingset_refault_anon",
    "mmap_readahead": "mmap_readahead",
}
_DISK_COUNTS = ("read_bytes", "read_requests", "write_bytes")


@dataclass(frozen=True)
class Run:
    """A cell that was run to its end."""

    cell: ProgramCell
    read_ahead_kb: int | None
    """What the first disk really had, in KiB; None without a disk."""
    kernel: KernelFacts
    job: JobResult
    counts: Mapping[str, Any]
    """As guest/tools/measure.c writes them; the disks by what they are for: data, root."""
    warnings: Sequence[str]
    """First lines of what the kernel complained about meanwhile."""
    remark: str = ""
    """That the guest had too little time, if so, which is no fault of the kernel where time is not real."""

    @property
    def status(self) -> int:
        """As a shell has it: the program's own, or 128 and the signal that ended it."""
        return 128 + self.job.signal if self.job.signal else self.job.status

    @property
    def facts(self) -> dict[str, Any]:
        """For JSON: counts of the whole guest during the run, seconds of its clock, bytes of the data disk.

        What the kernel does not count, or has no disk for, is None.
        """
        events = self.counts.get("vmstat", {})
        faults, major = events.get("pgfault"), events.get("pgmajfault")
        disks = self.counts.get("disks", {})
        data = disks.get("data", {})
        return {
            "variant": self.cell.variant.name,
            "read_ahead_kb": self.read_ahead_kb,
            "kernel": asdict(self.kernel),
            "status": self.status,
            "seconds": self.counts.get("seconds"),
            **{name: data.get(name) for name in _DISK_COUNTS},
            **{name: events.get(line) for name, line in _EVENTS.items()},
            "minor_faults": None if faults is None or major is None else faults - major,
            "disks": disks,
            "warnings": list(self.warnings),
            "remark": self.remark,
        }

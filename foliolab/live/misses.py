# SPDX-License-Identifier: GPL-2.0-only
"""What can be told of the kernel's counter of misses, which it shows to nobody.

Each open file has one. A miss of mapped access adds to it, a hit takes from it, and above its limit a miss without a
hint reads its page alone. So it is known by what misses read.
"""

from enum import Enum

from foliolab.live.verdict import Diagnosis, DiagnosisKind, FileShare, read_alone
from foliolab.live.watch import Observation

LIMIT = 100
"""MMAP_LOTSAMISS of mm/filemap.c."""


class MissCounter(Enum):
    OVER_LIMIT = "over-limit"
    """Misses read single pages, also where windows would pay."""
    HELD_DOWN = "held-down"
    """Hits keep it below, and misses go on reading windows."""


def miss_counter(seen: Observation, verdict: Diagnosis, file: FileShare) -> MissCounter | None:
    """Where the counter of a file is, by what its misses read; None if that does not tell."""
    data = file.seen
    if data.text or data.hint or seen.adaptive or seen.counted.major_faults <= LIMIT:
        return None
    if read_alone(seen, data):
        return MissCounter.OVER_LIMIT
    if data.come_and_gone or verdict.kind is not DiagnosisKind.READS_TOO_MUCH:
        return None
    if _windows_of_misses(seen, file) > LIMIT * len(data.processes):
        return MissCounter.HELD_DOWN
    return None


def _windows_of_misses(seen: Observation, file: FileShare) -> int:
    """How many misses of a file have read windows, at least; 0 if waits read less than half of one on average."""
    window, waits = file.seen.window_kb << 10, seen.counted.major_faults
    read = file.read_bytes or 0
    return min(waits, read // window) if window and 2 * read >= waits * window else 0

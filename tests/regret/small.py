# SPDX-License-Identifier: GPL-2.0-only
"""A suite that takes no time, and rows without any simulation."""

from msgspec.structs import replace

from foliolab.model.library import Pattern
from foliolab.regret.rows import RegretRow
from foliolab.regret.suite import Case, ModelDevice, load_suite

SLOW = ModelDevice("slow", wait=0, request=1e-4, seek=8e-3, reads_skipped=True, bytes_per_second=150e6, request_kb=512)
FAST = ModelDevice("fast", wait=6e-5, request=1e-6, bytes_per_second=2e9)

RIVALS = ("xnu", "freebsd", "zfetch", "competitive", "linux-7.3")

SMALL = replace(
    load_suite(),
    cases=(
        Case("forward", Pattern("sequential"), 4096),
        Case("some", Pattern("random"), 300, judged_only=True),
        Case("steps", Pattern("stride", stride=48), 80, passes=2),
    ),
    devices=(SLOW, FAST),
    file_pages=4096,
    times_memory=(0.5, 4),
    read_ahead_kb=(128, 512),
    windows_kb=(4, 32, 128, 512),
)


def row(
    variant: str,
    regret: float,
    pattern: str = "some",
    *,
    off: float = 2,
    device: str = "fast",
    judged_only: bool = False,
    family: str = "",
) -> RegretRow:
    """A row of a cell where the oracle costs two seconds; ``off`` is the regret of that variant there."""
    return RegretRow(
        pattern=pattern,
        read_ahead_kb=128,
        device=device,
        memory=0.5,
        variant=variant,
        cost=2 * regret,
        off_cost=2 * off,
        oracle_cost=2,
        oracle_window_kb=32,
        read_bytes=4096,
        major_faults=1,
        judged_only=judged_only,
        family=family,
    )

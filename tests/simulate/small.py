# SPDX-License-Identifier: GPL-2.0-only
"""A suite that takes no time, and rows without any simulation."""

from msgspec.structs import replace

from foliolab.device import Device
from foliolab.model.library import Pattern
from foliolab.simulate.rows import RegretRow
from foliolab.simulate.suite import Case, load_suite

SLOW = Device("slow", latency_us=4000, megabytes_per_second=150, requests_per_second=0, queue_depth=1)
FAST = Device("fast", latency_us=60, megabytes_per_second=2200, requests_per_second=0, queue_depth=64)
DEVICES = (SLOW, FAST)
"""A request costs 586 KiB, and 129 KiB."""

RIVALS = ("xnu", "freebsd", "zfetch", "competitive", "linux-7.3")

SMALL = replace(
    load_suite(),
    cases=(
        Case("forward", Pattern("sequential"), 4096),
        Case("some", Pattern("random"), 300, judged_only=True),
        Case("steps", Pattern("stride", stride=48), 80, passes=2),
    ),
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
    time: float | None = None,
) -> RegretRow:
    """A row of a cell where the oracle costs two seconds, and the fastest window takes four.

    ``off`` is the regret of that variant there, and ``time`` the one by time if that is another.
    """
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
        seconds=4 * (regret if time is None else time),
        oracle_seconds=4,
        read_bytes=4096,
        major_faults=1,
        judged_only=judged_only,
        family=family,
    )

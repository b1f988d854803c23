# SPDX-License-Identifier: GPL-2.0-only
"""A probe as it could have been: 50 us for a request and 8 us for a page, always."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from foliohost.devices import HostDevice
from foliohost.probe import DEEP_SIZES, DEEPEST, DEPTHS, SIZES, Probe


def probed(
    *,
    times: Mapping[int, Sequence[float]] | None = None,
    deep: Sequence[float] = (20.0,) * 8,
    rotational: bool | None = False,
    **facts: Any,
) -> Probe:
    """With other facts if wanted; ``deep`` is what a request costs when many are in flight, for each round."""
    attribute = Path(__file__).parent / "read_ahead_kb"
    usual: dict[str, Any] = {
        "files": [Path("/srv/data")],
        "device": HostDevice("sda", attribute, rotational),
        "seconds": 5.0,
        "reads": 20_000,
        "read_bytes": 1000 << 20,
        "times": times or {pages: [50.0 + 8 * pages] * 8 for pages in SIZES},
        "deep_times": {
            depth: {pages: [each + 2 * pages for each in deep] for pages in DEEP_SIZES} for depth in (*DEPTHS, DEEPEST)
        },
        "first_us": 60.0,
        "again_us": 58.0,
        "deepest_seconds": 1.0,
        "deepest_processor_seconds": 0.3,
        "reached_bytes": 1000 << 20,
        "data_bytes": 1 << 30,
        "size_bytes": 1 << 30,
    }
    return Probe(**(usual | facts))

# SPDX-License-Identifier: GPL-2.0-only
"""Observations for what is worked out from them."""

from typing import Any

from foliohost.observation import FileSeen, Observation
from foliohost.processes import Counters

MIB = 1 << 20
PAGE = 4096


def file_seen(**changes: Any) -> FileSeen:
    """A data file of 1 GiB on a disk with windows of 128 KiB, of which nothing was read."""
    facts: dict[str, Any] = {
        "path": "/srv/data.mdb",
        "device": "sda",
        "rotational": False,
        "window_kb": 128,
        "text": False,
        "hint": "",
        "size_bytes": 1024 * MIB,
        "rss_bytes": MIB,
        "pmd_mapped_bytes": 0,
        "mapped_pages": 0,
        "places": 0,
        "followers": 0,
        "crowds": (),
        "cached_pages": 0,
        "fresh_pages": 0,
        "evicted_pages": 0,
        "fault_pages": None,
        "major_faults": None,
        "read_before": 0,
        "resident_bytes": 0,
        "processes": (7,),
        "open_in": (7,),
        "alive": True,
    }
    return FileSeen(**(facts | changes))


def observation(*files: FileSeen, **counted: int) -> Observation:
    """Of ten seconds, with pages of 4 KiB."""
    return Observation(10.0, Counters(**counted), Counters(), Counters(), files, 0, 0, PAGE)


def look_ups() -> Observation:
    """1,000 look-ups, each of which read a window of 32 pages and mapped one."""
    read = 1000 * 32
    data = file_seen(mapped_pages=1100, places=1000, cached_pages=read)
    return observation(data, read_bytes=read * PAGE, major_faults=1000, minor_faults=10)

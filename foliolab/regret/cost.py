# SPDX-License-Identifier: GPL-2.0-only
"""What reads cost on a device."""

from msgspec import Struct

from foliolab.model.library import DEFAULT_REQUEST_KB, PAGE_BYTES, Counts
from foliolab.table import Number, Positive, Share, Text


class ModelDevice(Struct, frozen=True, forbid_unknown_fields=True):
    """A device in four figures. Times are in seconds."""

    name: Text
    wait: Share
    """Each time that the program waits for a read, beyond what the read itself takes."""
    request: Share
    """Each contiguous range that is read."""
    bytes_per_second: Number
    seek: Share = 0
    """Each of these ranges that does not come soon after the one before."""
    reads_skipped: bool = False
    """What lies between two that do passes at the same rate as what is read."""
    request_kb: Positive = DEFAULT_REQUEST_KB
    """What an administrator tells the kernel that a request costs here."""


def cost(counts: Counts, device: ModelDevice) -> float:
    """Seconds of waiting and of the device's time; nothing overlaps."""
    pages = counts.pages_read + (counts.pages_skipped if device.reads_skipped else 0)
    return (
        counts.waits * device.wait
        + counts.requests * device.request
        + counts.seeks * device.seek
        + pages * PAGE_BYTES / device.bytes_per_second
    )

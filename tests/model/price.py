# SPDX-License-Identifier: GPL-2.0-only
"""What accesses to the model cost, in one number."""

from foliolab.model.library import Counts


def cost(counts: Counts, request_pages: int) -> float:
    """Major faults, each of which is worth reading ``request_pages`` pages."""
    return counts.major_faults + counts.pages_read / request_pages

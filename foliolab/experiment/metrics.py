# SPDX-License-Identifier: GPL-2.0-only
"""The names under which every backend reports what it counted."""

METRICS = (
    "read_bytes",  # that the file's block device read
    "pgpgin_bytes",  # that the guest's kernel read from all block devices
    "floor_bytes",  # of the distinct pages touched: no kernel can read less
    "read_requests",  # that the block device finished
    "major_faults",
    "minor_faults",
    "seconds",  # by the guest's clock
    "instructions",  # that the guest executed meanwhile; backend qemu-icount only
)

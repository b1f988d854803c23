# SPDX-License-Identifier: GPL-2.0-only
"""How much a fault maps around its page, which a recording with --fine changes for the whole machine."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from foliohost.errors import UsageError
from foliohost.files import state_directory
from foliohost.processes import PAGE_BYTES

FAULT_AROUND = Path("/sys/kernel/debug/fault_around_bytes")


def fault_around_bytes() -> int | None:
    """How many bytes around its page a fault maps; None if this kernel does not tell."""
    try:
        return int(FAULT_AROUND.read_text())
    except (OSError, ValueError):
        return None


def lock(seconds: float) -> int:
    """A descriptor that has the lock of whoever changes what faults map; UsageError if others keep it for so long."""
    directory = state_directory()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(directory / "around", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() >= until:
                os.close(handle)
                raise UsageError("Another recording with --fine is going on.") from None
            time.sleep(0.05)


def put_back(around: str) -> bool:
    """Have faults map as much as before a recording; False if that cannot be set now."""
    now = fault_around_bytes()
    try:
        if now == PAGE_BYTES:  # else somebody has set it since
            FAULT_AROUND.write_text(around)
    except OSError:
        return False
    return now is not None

# SPDX-License-Identifier: GPL-2.0-only
"""Programs that we start."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from foliohost.limits import limit_as_before

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None)


def start(argv: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    """Run ``argv`` so that the kernel kills it as soon as we are gone; ``how`` is for Popen.

    The signal is tied to the thread that starts the command: start it from the main thread. What has no interpreter of
    its own runs as a script of the shell's, as it would from there.
    """
    us = os.getpid()

    def prepare() -> None:
        limit_as_before()
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != us:
            os.kill(os.getpid(), signal.SIGKILL)

    return subprocess.Popen(["/bin/sh", "-c", 'exec "$@"', "sh", *argv], preexec_fn=prepare, **how)


def adopt_orphans(adopt: bool = True) -> None:
    """With ``adopt``, orphans become our children; without, init's."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0)

# SPDX-License-Identifier: GPL-2.0-only
"""System calls that Python does not have."""

import ctypes
import os

_PIDFD_GETFD = 438  # on every architecture
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def pidfd_getfd(pidfd: int, number: int) -> int:
    """A descriptor of ours for the open file that another process has under ``number``; OSError as the kernel says.

    Since Linux 5.6. Both share everything but the number: position, flags, and the window.
    """
    arguments = (_PIDFD_GETFD, pidfd, number, 0)
    found: int = _libc.syscall(*(ctypes.c_long(argument) for argument in arguments))
    if found < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return found


def become_subreaper() -> None:
    """Have orphans among our descendants become our children, and no longer init's."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

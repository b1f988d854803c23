# SPDX-License-Identifier: GPL-2.0-only
"""What can go wrong, as one sentence for the user and an exit status of its own.

The lab's errors belong to the same tree. Nothing below the command line calls ``sys.exit``: it raises one of these,
and ``foliohost.cli.ending`` prints the sentence and exits with ``status``.
"""

from __future__ import annotations

INTERRUPTED = 130
"""The exit status after Ctrl-C or SIGTERM."""


class FolioError(Exception):
    """Base of all expected failures; the message is a sentence for the user."""

    status = 3

    def __init_subclass__(cls, status: int | None = None) -> None:
        """Give a kind of failure its exit status, or that of the kind which it belongs to."""
        if status is not None:
            cls.status = status


class UsageError(FolioError, status=2):
    """The command line asks for something that makes no sense."""


class BadTrace(FolioError, status=15):
    """A trace that cannot be read, or written: absent, of another version, cut off, damaged."""


class DiskFull(FolioError, status=40):
    """No space is left on a disk."""


class NotPermitted(FolioError, status=41):
    """The kernel lets only root, or a process's owner, do that."""


class NoCure(FolioError, status=42):
    """A window that cannot be set, or not safely."""


class NoProbe(FolioError, status=45):
    """A file by which the disk under it cannot be measured: too little data, holes, no direct reads, no disk."""

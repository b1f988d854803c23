# SPDX-License-Identifier: GPL-2.0-only
"""What can go wrong, as one sentence for the user and an exit status of its own.

The lab's errors belong to the same tree. Nothing below the command line calls ``sys.exit``: it raises one of these,
and ``foliohost.cli.ending`` prints the sentence and exits with ``status``.
"""

INTERRUPTED = 130
"""The exit status after Ctrl-C or SIGTERM."""


class FolioError(Exception):
    """Base of all expected failures; the message is a sentence for the user."""

    status = 3


class UsageError(FolioError):
    """The command line asks for something that makes no sense."""

    status = 2


class BadTrace(FolioError):
    """A trace that cannot be read, or written: absent, of another version, cut off, damaged."""

    status = 15


class DiskFull(FolioError):
    """No space is left on a disk."""

    status = 40


class NotPermitted(FolioError):
    """The kernel lets only root, or a process's owner, do that."""

    status = 41


class NoCure(FolioError):
    """A window that cannot be set, or not safely."""

    status = 42


class NoProbe(FolioError):
    """A file by which the disk under it cannot be measured: too little data, holes, no direct reads, no disk."""

    status = 45

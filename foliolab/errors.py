# SPDX-License-Identifier: GPL-2.0-only
"""Everything that can go wrong, as one sentence for the user and an exit status of its own.

Nothing below the command line calls ``sys.exit``: it raises one of these, and
``foliohost.cli.ending`` prints the sentence and exits with ``status``.
"""

from collections.abc import Iterable

from foliohost.errors import BadTrace as BadTrace
from foliohost.errors import DiskFull as DiskFull
from foliohost.errors import FolioError
from foliohost.errors import NoCure as NoCure
from foliohost.errors import NoProbe as NoProbe
from foliohost.errors import NotPermitted as NotPermitted
from foliohost.errors import UsageError as UsageError

LabError = FolioError
"""Base of all expected failures; the message is a sentence for the user."""


class ChecksFailed(LabError):
    """An answer is no: --check fails, a kernel fails a test that the first passes, a compiler complains about a kernel
    of the matrix, or doctor misses something."""

    status = 1


def require_known(
    complaint: str, names: Iterable[str], known: Iterable[str], error: type[LabError] = UsageError
) -> None:
    """Raise ``error`` for the first name that is not known; the complaint ends before the name."""
    there = list(known)
    for name in names:
        if name not in there:
            raise error(f"{complaint} '{name}'; known: {', '.join(there)}.")


class UnknownExperiment(LabError):
    """No experiment has this name."""

    status = 10


class UnknownVariant(LabError):
    """No variant has this name."""

    status = 11


class UnknownCell(LabError):
    """A pattern, or any other axis value, that the experiment does not have."""

    status = 12


class BadExperiment(LabError):
    """A file that is no TOML, or whose TOML does not say what it has to: an experiment, the plan, the matrix."""

    status = 13


class StoreError(LabError):
    """The sample store is damaged, or another run is using it."""

    status = 14


class SourceError(LabError):
    """A source, of a kernel or of LTP, that is absent or cannot be used."""

    status = 20


class HookError(LabError):
    """A patch of kernel/patches does not apply, named with file and hunk."""

    status = 21


class ConfigError(LabError):
    """The final .config lacks something that a fragment asked for."""

    status = 22


class BuildError(LabError):
    """A kernel, a module or a program could not be built."""

    status = 23


class UnknownKernel(LabError):
    """A kernel's name that names nothing: no such version, path or ref."""

    status = 24


class SeriesError(LabError):
    """A series of the user's that does not apply."""

    status = 25


class DirtyTree(LabError):
    """A git tree with changes that are not committed, where a commit is what matters."""

    status = 26


class MissingTool(LabError):
    """A program that is needed is not installed."""

    status = 30


class GuestCrashed(LabError):
    """The guest crashed, or its kernel complained while a program of the user ran (exec)."""

    status = 31


class GuestHung(LabError):
    """The guest did not end in time."""

    status = 32


class GuestOutOfMemory(LabError):
    """The guest ran out of memory."""

    status = 33


class NoResult(LabError):
    """There is no result: the guest gave none, or nothing like that was measured."""

    status = 34


class HostLost(LabError):
    """QEMU went away without the guest's doing."""

    status = 35


class ModelError(LabError):
    """A machine or a pattern that the model cannot be asked about."""

    status = 36


class BootFailed(LabError):
    """A kernel with which no guest comes up."""

    status = 37


class ClusterError(LabError):
    """Workers or their scheduler that cannot be had, do not fit, or are gone."""

    status = 43


class EmptyPart(LabError):
    """A part of a plan in which there is nothing to measure."""

    status = 44

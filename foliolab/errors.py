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


class ChecksFailed(LabError, status=1):
    """An answer is no: --check fails, a kernel fails a test that the first passes, a compiler complains about a kernel
    of the matrix, or doctor misses something."""


def require_known(
    complaint: str, names: Iterable[str], known: Iterable[str], error: type[LabError] = UsageError
) -> None:
    """Raise ``error`` for the first name that is not known; the complaint ends before the name."""
    there = list(known)
    for name in names:
        if name not in there:
            raise error(f"{complaint} '{name}'; known: {', '.join(there)}.")


class UnknownExperiment(LabError, status=10):
    """No experiment has this name."""


class UnknownVariant(LabError, status=11):
    """No variant has this name."""


class UnknownCell(LabError, status=12):
    """A pattern, or any other axis value, that the experiment does not have."""


class BadExperiment(LabError, status=13):
    """A file that is no TOML, or whose TOML does not say what it has to: an experiment, the plan, the matrix."""


class StoreError(LabError, status=14):
    """The sample store is damaged, or another run is using it."""


class SourceError(LabError, status=20):
    """A source, of a kernel or of LTP, that is absent or cannot be used."""


class HookError(LabError, status=21):
    """A patch of kernel/patches does not apply, named with file and hunk."""


class ConfigError(LabError, status=22):
    """The final .config lacks something that a fragment asked for."""


class BuildError(LabError, status=23):
    """A kernel, a module or a program could not be built."""


class UnknownKernel(LabError, status=24):
    """A kernel's name that names nothing: no such version, path or ref."""


class SeriesError(LabError, status=25):
    """A series of the user's that does not apply."""


class DirtyTree(LabError, status=26):
    """A git tree with changes that are not committed, where a commit is what matters."""


class MissingTool(LabError, status=30):
    """A program that is needed is not installed."""


class GuestCrashed(LabError, status=31):
    """The guest crashed, or its kernel complained while a program of the user ran (exec)."""


class GuestHung(LabError, status=32):
    """The guest did not end in time."""


class GuestOutOfMemory(LabError, status=33):
    """The guest ran out of memory."""


class NoResult(LabError, status=34):
    """There is no result: the guest gave none, or nothing like that was measured."""


class HostLost(LabError, status=35):
    """QEMU went away without the guest's doing."""


class ModelError(LabError, status=36):
    """A machine or a pattern that the model cannot be asked about."""


class BootFailed(LabError, status=37):
    """A kernel with which no guest comes up."""


class ClusterError(LabError, status=43):
    """Workers or their scheduler that cannot be had, do not fit, or are gone."""


class EmptyPart(LabError, status=44):
    """A part of a plan in which there is nothing to measure."""

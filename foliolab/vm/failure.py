# SPDX-License-Identifier: GPL-2.0-only
"""How guests and their jobs end, and exceptions for it."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from foliolab.errors import (
    BootFailed,
    GuestCrashed,
    GuestHung,
    GuestOutOfMemory,
    HostLost,
    LabError,
    NoResult,
)
from foliolab.vm.outcome import Outcome, OutcomeKind


class GuestFailure(LabError):
    """A guest that gave no answer, or a job that gave no result; ``outcome`` says how it ended."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.sentence)
        self.outcome = outcome
        self.report = outcome.report


class NotBooted(GuestFailure, BootFailed):
    pass


_ERRORS: Mapping[OutcomeKind, type[LabError]] = {
    OutcomeKind.GUEST_CRASH: GuestCrashed,
    OutcomeKind.HANG: GuestHung,
    OutcomeKind.OUT_OF_MEMORY: GuestOutOfMemory,
    OutcomeKind.NO_RESULT: NoResult,
    OutcomeKind.NOT_APPLICABLE: NoResult,
    OutcomeKind.LOST_HOST: HostLost,
}
_FAILURES: Mapping[OutcomeKind, type[GuestFailure]] = {
    kind: type(error.__name__, (GuestFailure, error), {}) for kind, error in _ERRORS.items()
}


def failure(outcome: Outcome) -> GuestFailure:
    """The exception for an outcome that is not ok: also a GuestCrashed, GuestHung ... with their exit status."""
    return _FAILURES[outcome.kind](outcome)


@dataclass(frozen=True)
class JobResult:
    """How a job ended. ``status`` is its exit status, or 0 if ``signal`` killed it."""

    argv: tuple[str, ...]
    status: int
    signal: int
    stdout: bytes
    stderr: bytes
    oom_kills: int
    """Processes that the guest's kernel killed for want of memory during the job."""
    cpu_seconds: float
    """CPU time of the program itself, from its start to its end, as the guest counts it."""

    @property
    def outcome(self) -> Outcome:
        """Ok if the job exited with status 0; else out-of-memory or no-result, with its last words."""
        if self.status == 0 and self.signal == 0:
            return Outcome(OutcomeKind.OK, "")
        words = self.stderr.decode(errors="replace").strip()
        if self.signal == signal.SIGKILL and self.oom_kills:
            return Outcome(OutcomeKind.OUT_OF_MEMORY, f"The guest had no memory left for {self.argv[0]}.", words)
        how = f"signal {self.signal}" if self.signal else f"status {self.status}"
        reason = f": {words.splitlines()[-1]}" if words else "."
        return Outcome(OutcomeKind.NO_RESULT, f"{self.argv[0]} ended with {how}{reason}", words)

    def checked(self) -> Self:
        """Itself if the outcome is ok; raises GuestFailure otherwise."""
        if self.outcome.kind is not OutcomeKind.OK:
            raise failure(self.outcome)
        return self

# SPDX-License-Identifier: GPL-2.0-only
"""How a boot ended, told from its console log, and a job in it; and exceptions for both. Plain data."""

import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Self

from foliolab.errors import BootFailed, GuestCrashed, GuestHung, GuestOutOfMemory, HostLost, LabError, NoResult

_STAMP = re.compile(r"^\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ")

# The first line of each kind of report, after the time stamp. They are anchored, because boot
# messages such as "Spectre V2 : WARNING: ..." are no reports. Most oopses are no first lines
# either: "BUG: ..." stands above them.
_TITLE = re.compile(
    r"""(?:
        WARNING:\ |
        (?:watchdog:\ )?BUG:\ |
        kernel\ BUG\ at\ |
        (?:Oops:\ )?(?:general\ protection\ fault|int3|stack\ segment|divide\ error|double\ fault) |
        Unable\ to\ handle\ kernel\ |
        # of arm64, where an access, BUG() or the compiler's checks have said more above it
        Internal\ error:\ (?!Oops:\ |Oops\ -\ (?:BUG|CFI|UBSAN)) |
        UBSAN:\ |
        INFO:\ task\ .*\ blocked\ for\ more\ than\ |
        INFO:\ trying\ to\ register\ non-static\ key |
        rcu:\ INFO:\ .*\ (?:detected|self-detected)\ |
        DEBUG_LOCKS_WARN_ON |
        kmemleak:\ .*\ new\ suspected\ memory\ leaks
    )""",
    re.VERBOSE,
)
_PANIC = re.compile(r"^Kernel panic - not syncing: (.*)")

# Panics that only say that the report printed before them was fatal.
_FOLLOWS_REPORT = re.compile(r"(?:[^:]+: )?Fatal exception|(?:\w+: )?panic_on_warn set|kasan\.fault=panic")
_NO_MEMORY = re.compile(r"Out of memory: .*panic_on_oom|System is deadlocked on memory")
# The interrupt that a hung guest is sent, whose panic prints its stacks.
_OUR_INTERRUPT = re.compile(r"NMI: Not continuing")
# Where time is not real, these only say that the host gave the guest too little of it; its counts are right.
_SLOW = re.compile(r"rcu.*detected|blocked for more than|soft lockup")
_LOCKUP = re.compile(r"NMI: Not continuing|softlockup: |hung_task: |Hard LOCKUP|RCU Stall")


class OutcomeKind(StrEnum):
    """Every way in which a measurement can end."""

    OK = "ok"
    GUEST_CRASH = "guest-crash"
    HANG = "hang"
    OUT_OF_MEMORY = "out-of-memory"
    NO_RESULT = "no-result"
    LOST_HOST = "lost-host"
    NOT_APPLICABLE = "not-applicable"


class Ending(Enum):
    """What the host saw of a guest that stopped answering."""

    DEADLINE = "deadline"
    """Still running when its time was up."""
    OFF = "off"
    """The guest switched itself off."""
    RESET = "reset"
    """The guest reset itself, as kernels do after a panic and processors after a triple fault."""
    LOST = "lost"
    """QEMU failed or was killed."""


@dataclass(frozen=True)
class Outcome:
    """How it ended, in one sentence."""

    kind: OutcomeKind
    sentence: str
    booted: bool = True
    """Whether the guest had come up before."""


@dataclass(frozen=True)
class _Panic:
    reason: str
    title: str
    """Of the report that it is about, which may stand above it."""


def _plain(console: str) -> list[str]:
    """The lines without their time stamps."""
    return [_STAMP.sub("", line) for line in console.replace("\r", "").split("\n")]


def _find_panic(lines: list[str]) -> _Panic | None:
    reported = ""
    for line in lines:
        if _TITLE.match(line):
            reported = line
        if found := _PANIC.match(line):
            return _Panic(found[1], reported if reported and _FOLLOWS_REPORT.match(found[1]) else line)
    return None


def splats(console: str) -> list[str]:
    """The first line of every warning, bug, sanitizer, lockdep, stall or hung-task report, and of a panic, in order.

    Left out are panics that follow from a report listed already, or that the lab itself provoked.
    """
    lines = _plain(console)
    titles = [line for line in lines if _TITLE.match(line)]
    panic = _find_panic(lines)
    if panic and panic.title not in titles and not _OUR_INTERRUPT.match(panic.reason):
        titles.append(panic.title)
    return titles


def complaints(titles: Iterable[str], *, real_time: bool) -> list[str]:
    """Those of some splats that say that the kernel is at fault, and not that an emulator's host was slow."""
    return [title for title in titles if real_time or not _SLOW.search(title)]


def short_of_time(titles: Iterable[str], *, real_time: bool) -> str:
    """By the first of some splats that is no complaint, that the host was slow, as a sentence; empty without one."""
    slow = [title for title in titles if not complaints([title], real_time=real_time)]
    return f"The guest had too little time: {slow[0]}" if slow else ""


def classify(console: str, ending: Ending, *, waited: str = "", host_words: str = "") -> Outcome:
    """Decide how a guest that stopped answering has ended.

    ``console`` is its whole log, ``waited`` says what it did not do by its deadline ("end its boot
    within 60 s"), and ``host_words`` why QEMU was lost.
    """
    if ending is Ending.LOST:
        return Outcome(OutcomeKind.LOST_HOST, f"QEMU went away: {host_words}.")
    lines = _plain(console)
    panic = _find_panic(lines)
    if panic and _NO_MEMORY.match(panic.reason):
        return Outcome(OutcomeKind.OUT_OF_MEMORY, f"The guest ran out of memory: {panic.reason}")
    if panic and not _LOCKUP.match(panic.reason):
        return Outcome(OutcomeKind.GUEST_CRASH, f"The guest crashed: {panic.title}")
    if ending is Ending.DEADLINE:
        titles = splats(console)
        hint = f" Its console says: {titles[-1]}" if titles else ""
        return Outcome(OutcomeKind.HANG, f"The guest did not {waited}.{hint}")
    if panic:
        return Outcome(OutcomeKind.HANG, f"The guest hung: {panic.reason}")
    if ending is Ending.RESET and not any(line.startswith("reboot: ") for line in lines):
        return Outcome(OutcomeKind.GUEST_CRASH, "The guest reset itself without a word on its console.")
    return Outcome(OutcomeKind.NO_RESULT, "The guest switched itself off without an answer.")


class GuestFailure(LabError):
    """A guest that gave no answer, or a job that gave no result; ``outcome`` says how it ended."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.sentence)
        self.outcome = outcome


class _NotBooted(GuestFailure, BootFailed):
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
    """The exception for an outcome that is not ok: also a BootFailed, GuestCrashed ... with their exit status."""
    return (_FAILURES[outcome.kind] if outcome.booted else _NotBooted)(outcome)


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
        """Ok if the job exited with status 0; else out-of-memory or no-result, with its last line."""
        if self.status == 0 and self.signal == 0:
            return Outcome(OutcomeKind.OK, "")
        if self.signal == signal.SIGKILL and self.oom_kills:
            return Outcome(OutcomeKind.OUT_OF_MEMORY, f"The guest had no memory left for {self.argv[0]}.")
        how = f"signal {self.signal}" if self.signal else f"status {self.status}"
        words = self.stderr.decode(errors="replace").strip().splitlines()
        reason = f": {words[-1]}" if words else "."
        return Outcome(OutcomeKind.NO_RESULT, f"{self.argv[0]} ended with {how}{reason}")

    def checked(self) -> Self:
        """Itself if the outcome is ok; raises GuestFailure otherwise."""
        if self.outcome.kind is not OutcomeKind.OK:
            raise failure(self.outcome)
        return self

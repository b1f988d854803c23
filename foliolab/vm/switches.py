# SPDX-License-Identifier: GPL-2.0-only
"""The switches of our kernel in a guest: files below /sys/kernel/mm, or named by a whole path."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from foliolab.toml import Value
from foliolab.vm.guest import Guest
from foliolab.vm.outcome import JobResult, Outcome, OutcomeKind, failure

SWITCHES = "/sys/kernel/mm"

LACKING = 77
"""Exit status of a probe, or of a verb of init, for what the kernel does not have."""


def switch_path(name: str) -> str:
    return str(PurePosixPath(SWITCHES) / name)


def switched(switches: Iterable[tuple[str, Value]]) -> list[str]:
    """The job of init that writes each switch, and puts back what was written before and is not among these.

    It writes nothing and ends with ``LACKING`` where the kernel does not have one of them.
    """
    return [":switch", *(f"{switch_path(name)}={value}" for name, value in switches)]


def lacking(result: JobResult, switches: Iterable[tuple[str, Value]]) -> str:
    """The switch that the kernel does not have, by what came of ``switched``, or nothing."""
    if result.status != LACKING:
        return ""
    words = result.stderr.decode(errors="replace").split()
    return next((name for name, _ in switches if f"{switch_path(name)}." in words), "")


def require_module(guest: Guest, name: str) -> None:
    """GuestFailure, with the kernel's reason, unless the guest has loaded the module of this name."""
    if guest.run([":list", f"/sys/module/{name}"]).outcome.kind is not OutcomeKind.OK:
        # A kernel that is locked down does not name the module that it refuses.
        said = re.findall(
            rf"^\[ *[\d.]+\] (.*(?:{name}|module.* re(?:stricted|jected)).*?)\r?$", guest.console(), re.MULTILINE
        )
        reason = f": {said[-1]}" if said else "."
        raise failure(Outcome(OutcomeKind.NO_RESULT, f"The guest has not loaded the module {name}{reason}"))

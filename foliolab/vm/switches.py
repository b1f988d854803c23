# SPDX-License-Identifier: GPL-2.0-only
"""The switches of our kernel in a guest: files below /sys/kernel/mm, or named by a whole path."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from foliolab.table import Value
from foliolab.vm.guest import Guest
from foliolab.vm.outcome import Outcome, OutcomeKind, failure

SWITCHES = "/sys/kernel/mm"


def switch_path(name: str) -> str:
    """Where the file of a switch is."""
    return str(PurePosixPath(SWITCHES) / name)


class Switches:
    """The switches of one boot, which remember how it booted."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._booted: dict[str, str] = {}
        """Of every file that may have changed since."""

    def set(self, switches: Iterable[tuple[str, Value]]) -> None:
        """Write each switch, and put back what was written before and is not among these.

        Raises GuestFailure for one that the kernel does not have.
        """
        wanted = {name: str(value) for name, value in switches}
        for name in wanted:
            self._remember(name)
        for name, value in self._booted.items():
            if name not in wanted:
                self._run(":write", name, value)
        # Last: what is put back for one folio size may take exec from another.
        for name, value in wanted.items():
            self._run(":write", name, value)

    def lacking(self, switches: Iterable[tuple[str, Value]]) -> str:
        """The first of them that the kernel does not have, or nothing."""
        for name, _ in switches:
            if name in self._booted:
                continue
            if self._guest.run([":read", switch_path(name)]).outcome.kind is not OutcomeKind.OK:
                return name
        return ""

    def _remember(self, name: str) -> None:
        """Keep what a file holds before it is first written, and others that change with it."""
        if name in self._booted:
            return
        self._booted[name] = chosen(self._run(":read", name))
        path = PurePosixPath(name)
        if path.name != "file_enabled":
            return
        # At most one folio size has exec: giving it to one takes it from another.
        for size in self._run(":list", str(path.parent.parent)).split():
            other = str(path.parent.parent / size / path.name)
            found = self._guest.run([":read", switch_path(other)])
            if found.outcome.kind is OutcomeKind.OK:
                self._booted.setdefault(other, chosen(found.stdout.decode()))

    def _run(self, verb: str, name: str, *arguments: str) -> str:
        return self._guest.run([verb, switch_path(name), *arguments]).checked().stdout.decode()


def require_module(guest: Guest, name: str) -> None:
    """GuestFailure, with the kernel's reason, unless the guest has loaded the module of this name."""
    if guest.run([":list", f"/sys/module/{name}"]).outcome.kind is not OutcomeKind.OK:
        # A kernel that is locked down does not name the module that it refuses.
        said = re.findall(
            rf"^\[ *[\d.]+\] (.*(?:{name}|module.* re(?:stricted|jected)).*?)\r?$", guest.console(), re.MULTILINE
        )
        reason = f": {said[-1]}" if said else "."
        raise failure(
            Outcome(OutcomeKind.NO_RESULT, f"The guest has not loaded the module {name}{reason}", "\n".join(said))
        )


def chosen(text: str) -> str:
    """The value in a switch's file: the word in brackets if it lists all that it takes, else the whole."""
    found = re.search(r"\[(.+?)\]", text)
    return found[1] if found else text.strip()

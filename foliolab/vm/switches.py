# SPDX-License-Identifier: GPL-2.0-only
"""The switches of our kernel in a guest."""

from collections.abc import Iterable

from foliolab.vm.guest import Guest

SWITCHES = "/sys/kernel/mm/mmap_readahead"


def set_switches(guest: Guest, switches: Iterable[tuple[str, int]]) -> None:
    """Write each switch; raises GuestFailure for one that the kernel does not have."""
    for name, value in switches:
        guest.run([":write", f"{SWITCHES}/{name}", str(value)]).checked()

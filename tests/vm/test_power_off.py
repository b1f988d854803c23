# SPDX-License-Identifier: GPL-2.0-only
"""The end of a guest whose disks are kept, without a guest: only a full disk of the host's makes one fail."""

import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from foliolab.arch import NATIVE
from foliolab.errors import DiskFull
from foliolab.vm.accel import choose
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.outcome import Ending, GuestFailure

OFF = "[    9.1] reboot: Power down\n"
LOST_WRITE = "[    9.0] Buffer I/O error on dev vda, logical block 77, lost async page write\n"


def power_off(console: Path, text: str) -> None:
    """As a guest would have it that has written this before it went."""
    disks = (Disk(Path("/lib/base.img")), Disk(Path("/place/data.img"), "raw", keep_writes=True))
    guest = Guest(GuestConfig(NATIVE, console, console, choose(NATIVE, "tcg"), disks=disks), console)
    console.write_text(text)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.shutdown(socket.SHUT_WR)
        qemu = SimpleNamespace(control=ours, ending=lambda: Ending.OFF)
        guest._qemu = qemu  # type: ignore[assignment]
        guest.power_off()


def test_what_could_not_be_written_is_told(tmp_path: Path) -> None:
    power_off(tmp_path / "console", OFF)
    with pytest.raises(DiskFull, match=r"^The guest could not write to its disk; is there space left in /place\?$"):
        power_off(tmp_path / "console", LOST_WRITE + OFF)


def test_a_guest_that_went_otherwise_has_not_ended_cleanly(tmp_path: Path) -> None:
    with pytest.raises(GuestFailure, match="switched itself off without an answer"):
        power_off(tmp_path / "console", "[    9.1] something else\n")

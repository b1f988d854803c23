# SPDX-License-Identifier: GPL-2.0-only
"""QEMU's monitor, without QEMU."""

import socket

from foliolab.vm.qemu import Qemu


def test_a_monitor_that_was_silent_for_too_long_is_given_up() -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(0.01)
    qemu = Qemu.__new__(Qemu)
    qemu._shutdown_reason = ""
    with ours, theirs, ours.makefile("rb") as qemu._messages:
        qemu._read(1)
        theirs.sendall(b'{"event": "SHUTDOWN", "data": {"reason": "guest-reset"}}\n')
        qemu._read(1)
    assert qemu._shutdown_reason == ""

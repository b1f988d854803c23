# SPDX-License-Identifier: GPL-2.0-only
"""The QEMU process below a guest: its start, its monitor, its end."""

import json
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress

from foliolab import process
from foliolab.vm.outcome import Ending

_EXIT_SECONDS = 10
"""How long QEMU may take to end after its end of the control socket has closed."""

_DYING_SECONDS = 10
"""How long a hung guest may take to print its stacks."""


class Qemu:
    """QEMU with the socket of a character device called "control", at the other end of ``control``.

    The kernel kills it when the thread that made it ends, so it is to be made by the main thread.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self.control, control = socket.socketpair()
        self._monitor, monitor = socket.socketpair()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        sockets = ["-chardev", f"socket,id=control,fd={control.fileno()}"]
        sockets += ["-chardev", f"socket,id=monitor,fd={monitor.fileno()}", "-mon", "chardev=monitor,mode=control"]
        with control, monitor:
            # A process group of its own keeps Ctrl-C on the terminal from reaching QEMU before us.
            self._process = subprocess.Popen(
                process.dying_with_parent([*argv, *sockets]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._words,
                pass_fds=[control.fileno(), monitor.fileno()],
                process_group=0,
            )
        self._command("qmp_capabilities")  # without it there are no events

    @property
    def pid(self) -> int:
        return self._process.pid

    def print_stacks(self) -> None:
        """Have a hung guest panic by an interrupt that it cannot mask, and wait until it has printed its stacks."""
        self._command("inject-nmi")
        try:
            self._process.wait(_DYING_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def ending(self) -> Ending:
        """How it ended, once it has closed the control socket."""
        try:
            status = self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return Ending.DEADLINE
        if status != 0:
            return Ending.LOST
        return Ending.RESET if self._shutdown_reason() == "guest-reset" else Ending.OFF

    def words(self) -> str:
        """Why it ended without the guest's doing."""
        status = self._process.wait()
        if status < 0:
            return f"killed by {signal.Signals(-status).name}"
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {status}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self.control.close()
        self._monitor.close()
        self._words.close()

    def _command(self, name: str) -> None:
        with suppress(BrokenPipeError):  # if it has ended, the control socket tells
            self._monitor.sendall(json.dumps({"execute": name}).encode() + b"\n")

    def _shutdown_reason(self) -> str:
        with self._monitor.makefile("rb") as stream:
            for line in stream:
                message = json.loads(line)
                if message.get("event") == "SHUTDOWN":
                    return str(message["data"]["reason"])
        return ""

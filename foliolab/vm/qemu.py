# SPDX-License-Identifier: GPL-2.0-only
"""The QEMU process below a guest: its start, its monitor, its end."""

import json
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from foliolab import process
from foliolab.vm.outcome import Ending

_EXIT_SECONDS = 10
"""How long QEMU may take to end after its end of the control socket has closed."""

_DYING_SECONDS = 10
"""How long a hung guest may take to print its stacks."""

_ANSWER_SECONDS = 3
"""How long a guest that is not wholly hung may take to answer a key of its console."""

_KEYS = ((b"l", b"sysrq: Show backtrace"), (b"w", b"sysrq: Show Blocked"), (b"b", b"sysrq: Resetting"))
"""What a hung guest is asked for, and the answers: stacks of all CPUs and of all blocked tasks, and a reset."""


class Qemu:
    """QEMU with the socket of a character device called "control", at the other end of ``control``.

    Another one, called "console", is logged in the file ``console``.
    The kernel kills QEMU when the thread that made it ends, so it is to be made by the main thread.
    """

    def __init__(self, argv: Sequence[str], console: Path) -> None:
        self._console = console
        self.control, control = socket.socketpair()
        self._monitor, monitor = socket.socketpair()
        self._monitor.settimeout(_EXIT_SECONDS)
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._messages = self._monitor.makefile("rb")
        self._commands = 0
        self._shutdown_reason = ""
        devices = ["-chardev", f"socket,id=control,fd={control.fileno()}", "-chardev", "stdio,id=console,signal=off"]
        devices += ["-chardev", f"socket,id=monitor,fd={monitor.fileno()}", "-mon", "chardev=monitor,mode=control"]
        with control, monitor, console.open("wb") as log:
            # A process group of its own keeps Ctrl-C on the terminal from reaching QEMU before us.
            self._process = subprocess.Popen(
                process.dying_with_parent([*argv, *devices]),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=self._words,
                pass_fds=[control.fileno(), monitor.fileno()],
                process_group=0,
            )
        assert self._process.stdin
        self._keyboard = self._process.stdin
        self._send("qmp_capabilities")  # without it there are no events

    def force_stacks(self) -> None:
        """Have a hung guest panic by an interrupt that it cannot mask, and wait until it has printed its stacks."""
        self._send("inject-nmi")
        self._end_soon()

    def ask_for_stacks(self) -> None:
        """Have a hung guest print its stacks and reset itself by keys of its console, if it still listens to them."""
        patience = _ANSWER_SECONDS
        for key, answer in _KEYS:
            said = self._console.stat().st_size
            self._send("chardev-send-break", id="console")
            self._read(self._commands)  # until that is done
            with suppress(BrokenPipeError):
                self._keyboard.write(key)
                self._keyboard.flush()
            if not self._says(answer, said, patience):
                self.kill()
                return
            patience = _DYING_SECONDS  # until it has printed what it was asked for before
        self._end_soon()

    def ending(self) -> Ending:
        """How it ended, once it has closed the control socket."""
        try:
            status = self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return Ending.DEADLINE
        if status != 0:
            return Ending.LOST
        self._read()
        return Ending.RESET if self._shutdown_reason == "guest-reset" else Ending.OFF

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
        with suppress(BrokenPipeError):
            self._keyboard.close()
        self.control.close()
        self._messages.close()
        self._monitor.close()
        self._words.close()

    def _end_soon(self) -> None:
        try:
            self._process.wait(_DYING_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def _says(self, words: bytes, after: int, seconds: float) -> bool:
        """Wait until ``words`` stand in the console's log, after its first ``after`` bytes."""
        deadline = time.monotonic() + seconds
        while words not in self._console.read_bytes()[after:]:
            if time.monotonic() > deadline or self._process.poll() is not None:
                return False
            time.sleep(0.01)
        return True

    def _send(self, name: str, **arguments: str) -> None:
        self._commands += 1
        command = {"execute": name, "arguments": arguments, "id": self._commands}
        with suppress(BrokenPipeError):  # if it has ended, the control socket tells
            self._monitor.sendall(json.dumps(command).encode() + b"\n")

    def _read(self, wanted: int = 0) -> None:
        """Read what the monitor says, up to the answer to a command or to the end."""
        with suppress(OSError):  # a timeout, and every read after one; or it has gone away
            for line in self._messages:
                message: dict[str, Any] = json.loads(line)
                if message.get("event") == "SHUTDOWN":
                    self._shutdown_reason = str(message["data"]["reason"])
                if wanted and message.get("id") == wanted:
                    return

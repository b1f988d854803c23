# SPDX-License-Identifier: GPL-2.0-only
"""Whom to record: a process of somebody else's, or a program of our own."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from typing import Union

from foliohost.errors import UsageError
from foliohost.processes import require_running, runs
from foliohost.program import start


class Process:
    """A process that is there already; UsageError if it is not."""

    def __init__(self, process: int) -> None:
        self.process = process
        require_running(process)

    def begin(self) -> None:
        """It is recorded now."""

    def ended(self) -> bool:
        return not runs(self.process)

    def end(self) -> None:
        """Ask what is ours to end, which this is not."""

    def leave(self) -> None:
        """Recording has failed, which is nothing to this one."""

    def status(self) -> int:
        """The exit status of a program of ours, as a shell has it, after its end."""
        return 0


class StartedProgram:
    """A program that waits until it is told to begin, and is killed if we are; UsageError if there is none."""

    def __init__(self, argv: Sequence[str]) -> None:
        if not shutil.which(argv[0]):
            raise UsageError(f"There is no program {argv[0]}.")
        gate = ["/bin/sh", "-c", 'kill -STOP $$; exec "$@"', "sh", *argv]
        self._child = start(gate)
        self.process = self._child.pid
        self._begun = False
        os.waitpid(self.process, os.WUNTRACED)

    def begin(self) -> None:
        self._begun = True
        self._child.send_signal(signal.SIGCONT)

    def ended(self) -> bool:
        return self._child.poll() is not None

    def end(self) -> None:
        self._child.terminate()
        self._child.send_signal(signal.SIGCONT)  # behind the other, or what waits to begin would

    def leave(self) -> None:
        """Recording has failed: what has begun runs to its end, as it would die with us, and nothing else begins."""
        if not self._begun:
            self.end()
        try:
            self.status()
        except KeyboardInterrupt:  # for the program: it is the failure that is told
            self.end()
            self.status()

    def status(self) -> int:
        status = self._child.wait()
        return status if status >= 0 else 128 - status


LiveTarget = Union[Process, StartedProgram]

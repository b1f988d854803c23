# SPDX-License-Identifier: GPL-2.0-only
"""Workers on hosts that ssh reaches: a connection with each, which they do not outlive.

It is the user's own ssh, so that names, keys and whatever else its configuration says hold here too. It never asks.
"""

import ipaddress
import re
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import distributed
from msgspec import Struct

from foliolab.campaign.hosted import READY
from foliolab.campaign.worker import lab_code
from foliolab.errors import ClusterError
from foliolab.files import REPOSITORY
from foliolab.process import dying_with_parent, run, tool
from foliolab.table import Positive, Text, Texts

_OPTIONS = (
    *("-T", "-oBatchMode=yes", "-oConnectTimeout=10", "-oServerAliveInterval=15", "-oServerAliveCountMax=3"),
    # What a user's configuration does at a login is no business of workers.
    *("-oRemoteCommand=none", "-oClearAllForwardings=yes", "-oPermitLocalCommand=no"),
)
_READY_SECONDS = 120
_END_SECONDS = 10
_NO_CONNECTION = 255
"""With which ssh ends for reasons of its own; others are those of the command there."""
_NO_PROGRAM = (126, 127)


class Hosts(Struct, frozen=True, forbid_unknown_fields=True):
    """What a file for --cluster says of them."""

    ssh: Texts
    """Their names as ssh knows them."""
    checkout: Text = str(REPOSITORY)
    """Of foliolab, on each."""
    workers_per_host: Positive = 1

    def command(self, scheduler: str) -> str:
        """For the shell there."""
        python = f"{self.checkout}/.venv/bin/python"
        words = ["env", f"PYTHONPATH={self.checkout}", python, "-m", "foliolab.campaign.hosted"]
        return shlex.join([*words, scheduler, str(self.workers_per_host), lab_code()])

    def see_us_at(self) -> str:
        """The address of this host by which they reach it."""
        addresses: list[str] = [distributed.utils.get_ip(_address(name)) for name in self.ssh]
        # A host that is this one as well reaches any of its addresses.
        return next((each for each in addresses if not ipaddress.ip_address(each).is_loopback), addresses[0])


def _address(host: str) -> str:
    """Name or address that ssh connects to if it is told this one."""
    configuration = run([tool("ssh"), "-G", "--", host], ClusterError).decode()
    found = re.search(r"^hostname (.+)$", configuration, re.MULTILINE)
    return found[1] if found else host


class _Connection:
    """With the workers of one host."""

    def __init__(self, host: str, hosts: Hosts, scheduler: str) -> None:
        self._host = host
        self._checkout = hosts.checkout
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        # A session of its own, so that Ctrl-C on the terminal reaches us first.
        self._process = subprocess.Popen(
            dying_with_parent([tool("ssh"), *_OPTIONS, "--", host, hosts.command(scheduler)]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,
        )
        self._ready = self._ended = False
        self._told = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:  # a shell may say something else first
            if line.strip() == READY.encode():
                self._ready = True
                self._told.set()
        self._process.wait()
        self._ended = True
        self._told.set()

    def wait_until_ready(self, until: float) -> None:
        """ClusterError if the host has no workers at that time, of the monotonic clock, or cannot have any."""
        self._told.wait(max(until - time.monotonic(), 0))
        if complaint := self.complaint():
            raise ClusterError(complaint)
        if not self._ready:
            raise ClusterError(f"{self._host} has no worker after {_READY_SECONDS} seconds.")

    def complaint(self) -> str:
        """Why there are no workers any more, as a sentence; empty as long as there are."""
        if not self._ended:
            return ""
        self._words.seek(0)
        lines = [line for line in self._words.read().decode(errors="replace").splitlines() if line.strip()]
        reason = lines[-1].strip().removeprefix("ssh: ").rstrip(".") if lines else "it ended without a word"
        status = self._process.returncode
        if status == _NO_CONNECTION:
            return f"There is no connection with {self._host}: {reason}."
        if status in _NO_PROGRAM or "No module named" in reason:
            return f"{self._host} has no such foliolab with its Python environment in {self._checkout}: {reason}."
        return f"{self._host} cannot measure: {reason}."

    def end(self) -> None:
        """Have the workers end."""
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def close(self, until: float) -> None:
        """Wait for that until a time of the monotonic clock, and end the connection."""
        self._listener.join(max(until - time.monotonic(), 0))
        self._process.kill()
        self._listener.join()
        self._words.close()


class Connections:
    """With the workers of all hosts."""

    def __init__(self, connections: Sequence[_Connection]) -> None:
        self._left = list(connections)

    def news(self) -> list[str]:
        """Sentences on connections that have ended since this was last asked; ClusterError if no host is left."""
        complaints = {each: each.complaint() for each in self._left}
        self._left = [each for each, complaint in complaints.items() if not complaint]
        ended = list(filter(None, complaints.values()))
        if not self._left:
            raise ClusterError(" ".join([*ended, "No host is left."]))
        return ended


@contextmanager
def connected(hosts: Hosts, scheduler: str) -> Iterator[Connections]:
    """All with all their workers, ready, at a scheduler's address; ClusterError if one cannot be had."""
    until = time.monotonic() + _READY_SECONDS
    connections = []
    try:
        for name in hosts.ssh:
            connections.append(_Connection(name, hosts, scheduler))
        for connection in connections:
            connection.wait_until_ready(until)
        yield Connections(connections)
    finally:
        for connection in connections:  # all at once: frozen ones are waited for
            connection.end()
        until = time.monotonic() + _END_SECONDS
        for connection in connections:
            connection.close(until)

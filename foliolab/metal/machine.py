# SPDX-License-Identifier: GPL-2.0-only
"""A machine behind ssh, and a campaign on it.

The machine measures by itself, whether or not somebody looks. So this copies what it lacks, starts it, and asks from
time to time. Killed at any moment, the next one takes up where the machine is by then.
"""

import shlex
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import IO

from foliolab.campaign.job import Job, Watcher
from foliolab.campaign.sample import LOST_HOST
from foliolab.errors import HostLost, LabError, UsageError
from foliolab.files import write_atomic
from foliolab.metal.answers import BootRead, facts_of
from foliolab.metal.bundle import make_bundle, unpack
from foliolab.process import dying_with_parent

HOME = "/var/lib/foliolab/metal"
"""Where everything is on a machine."""

_REFUSED = 3
"""Exit status of the runner for a machine that cannot do it."""
_SSH_FAILED = 255
_POLL_SECONDS = 5.0
_FAILED_POLLS = 3
"""Polls in a row that get there and fail, before we give up: while the machine comes up, some may."""
_DEAD_POLLS = 3
"""Polls in a row that find no runner before we give up: while the machine reboots, there is none for a moment."""
_SSH = [f"-o{option}" for option in ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15")]
_LEASE_SECONDS = 4 * 3600
"""How long a machine goes on unasked, and may not answer: it has no network while it measures."""


_RECEIVE = f"""\
cd {HOME}
exec 9<.
if ! flock -n 9; then echo 'Another lab is copying to this machine.' >&2; exit 3; fi
if [ -e run/journal ] && [ ! -e run/ended ]; then
	echo 'what an earlier command sent has just begun; repeat this one to take what it measures' >&2
	exit 1
fi
rm -rf new
trap 'rm -rf new' EXIT
mkdir new
tar -C new -xof -
sync
for file in new/files/*; do [ ! -e "$file" ] || mv "$file" files/; done
mv new/runner runner
rm -rf run.before
if [ -e run ]; then mv run run.before; fi
mv new/run run
sync
"""
"""Unpacks a bundle aside, and renames it when it is whole. Keeps the results of the last run until the next bundle."""


class Unreachable(HostLost):
    """ssh does not get there, now."""


@dataclass(frozen=True)
class RemoteMachine:
    """Runs commands there, as root."""

    called: str
    """The name that the user gave."""
    ssh: tuple[str, ...]
    """What ssh takes to get there: a destination, perhaps with options before it."""
    options: tuple[str, ...] = ()
    """Of the runner."""

    def run(self, command: str, send: IO[bytes] | None = None) -> bytes:
        """What a command line of the shell prints.

        Unreachable if ssh fails, UsageError for what the runner refuses, HostLost for any other failure.
        """
        whole = f"sh -ec {shlex.quote(command)}"
        as_root = f'if [ "$(id -u)" -eq 0 ]; then {whole}; else sudo -n {whole}; fi'
        argv = ["ssh", *_SSH, *self.ssh, as_root]
        done = subprocess.run(
            dying_with_parent(argv), stdin=send or subprocess.DEVNULL, capture_output=True, check=False
        )
        *_, words = done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        if done.returncode == _REFUSED:
            raise UsageError(words)
        if done.returncode == _SSH_FAILED:
            sentence = f"{self.called} cannot be used by ssh: {words.rstrip('.')}."
            raise Unreachable(f"{sentence} It does not answer while it measures.")
        if done.returncode:
            raise HostLost(f"{self.called} fails: {words.rstrip('.')}.")
        return done.stdout

    def runner(self, *words: str) -> bytes:
        """What the runner there prints."""
        return self.run(f"sh {HOME}/runner {shlex.join(words)}")

    @cached_property
    def name(self) -> str:
        """What it calls itself, and the spare device if there is to be one, as the runner has it in its facts."""
        command = "uname -n"
        if "--spare" in self.options:
            spare = self.options[self.options.index("--spare") + 1]
            command = f'echo "$(uname -n) with $(readlink -f {shlex.quote(spare)})"'
        name = self.run(command).decode().strip()
        if name.startswith("localhost"):
            raise UsageError(f"{self.called} calls itself {name}: give it a name by which its samples are known.")
        return name

    def has_run(self) -> bool:
        """Whether the machine has a run, ended or not. Resumes one that was killed."""
        command = f"if [ -e {HOME}/run/journal ]; then sh {HOME}/runner resume; echo yes; fi"
        return self.run(command) != b""

    def send(self, bundle: Path) -> None:
        """Bring a bundle there: what it lacks of the files, and all else."""
        words = self.run(f"mkdir -p {HOME}/files; cd {HOME}/files; sha256sum * 2>/dev/null || true").decode().split()
        there = {name for found, name in zip(words[::2], words[1::2], strict=True) if found == name}
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as stream:
                for file in sorted((bundle / "files").iterdir()):
                    if file.name not in there:
                        stream.add(file, f"files/{file.name}")
                stream.add(bundle / "run", "run")
                # The runner is last: GNU tar takes a stream that is cut between two members for whole, and then
                # the machine has no runner to rename.
                stream.add(bundle / "runner", "runner")
            packed.seek(0)
            self.run(_RECEIVE, packed)

    def start(self) -> None:
        """Begin what was sent; UsageError, in a sentence, if it cannot."""
        self.runner("start", "--lease", str(_LEASE_SECONDS), *self.options)


def remote_machine(name: str, options: Sequence[str] = ()) -> RemoteMachine:
    """The machine at an ssh destination; UsageError for what is none."""
    if not name or name.startswith("-"):
        raise UsageError(f"'{name}' is no destination of ssh.")
    return RemoteMachine(name, (name,), tuple(options))


class OnMachine:
    """Executes jobs of a HostBackend on a machine."""

    def __init__(self, machine: RemoteMachine) -> None:
        self._machine = machine

    def timed_on(self) -> str:
        return self._machine.name

    def run(self, jobs: Iterable[Job], consoles: Path, watcher: Watcher) -> None:
        """Execute all; what another one of us has begun for the same, goes on."""
        pending = list(jobs)
        wanted = {work.form.key for job in pending for work in job.works}
        if self._machine.has_run():
            watcher.say(f"{self._machine.name} has a run; what that has measured is taken.")
            wanted -= self._follow(wanted, consoles, watcher, earlier=True)
            pending = [job for job in pending if any(work.form.key in wanted for work in job.works)]
        if not pending:
            return
        with tempfile.TemporaryDirectory(prefix="foliolab-bundle-") as place:
            boots = make_bundle(Path(place, "metal"), pending)
            watcher.note(f"copying to {self._machine.name}")
            self._machine.send(Path(place, "metal"))
        self._machine.start()
        watcher.note(f"{boots} boots of {self._machine.name}")
        left = wanted - self._follow(wanted, consoles, watcher)
        if left:
            raise HostLost(f"{self._machine.name} has ended before all was measured: {self._last_words}.")

    def _follow(self, wanted: set[str], consoles: Path, watcher: Watcher, *, earlier: bool = False) -> set[str]:
        """Record the samples of a run whose keys are wanted, until it ends. Returns the keys that were recorded.

        Of an ``earlier`` run, which the next bundle replaces, others are recorded as well. Samples of it that are
        LOST_HOST do not count: they are measured again.
        """
        known: set[str] = set()
        found: set[str] = set()
        dead = 0
        while True:
            with tempfile.TemporaryDirectory(prefix="foliolab-poll-") as scratch:
                place = Path(scratch)
                self._poll(place, known)
                facts = facts_of(_said(place / "facts"))
                for boot in sorted((place / "boots").glob("*")):
                    known.add(boot.name)
                    try:
                        read = BootRead(boot, facts)
                    except LabError as error:
                        watcher.say(f"{self._machine.name}: {error}")
                        continue
                    write_atomic(consoles / f"{read.name}.log", read.console)
                    for sample in read.samples():
                        if earlier and sample.outcome == LOST_HOST:
                            continue
                        mine = sample.key in wanted - found
                        if mine or earlier:
                            watcher.record(sample, mine)
                        if mine:
                            found.add(sample.key)
                journal = _said(place / "journal").splitlines()
                self._last_words = journal[-1] if journal else "its journal is empty"
                watcher.note(f"{self._machine.name}: {self._last_words}"[:100])
                if (place / "ended").exists():
                    return found
                dead = dead + 1 if (place / "dead").exists() else 0
                if dead == _DEAD_POLLS:
                    said = " / ".join(_said(place / "dead").splitlines())
                    raise HostLost(
                        f"The runner of {self._machine.name} was killed before all was measured; its log ends with"
                        f" '{said}'. Repeat the command to continue."
                    )
            time.sleep(_POLL_SECONDS)

    def _poll(self, place: Path, known: set[str]) -> None:
        """Fetch what is new; a machine that starts again does not answer for a while."""
        deadline = time.monotonic() + _LEASE_SECONDS
        failed = 0
        while True:
            try:
                packed = self._machine.runner("poll", *sorted(known))
                break
            except Unreachable:
                if time.monotonic() > deadline:
                    raise
            except HostLost:
                failed += 1
                if failed == _FAILED_POLLS:
                    raise
            time.sleep(_POLL_SECONDS)
        unpack(BytesIO(packed), place, f"What {self._machine.name} sends")


def _said(file: Path) -> str:
    """The text of a file that the machine has sent; empty if it has not."""
    return file.read_text(errors="replace") if file.exists() else ""

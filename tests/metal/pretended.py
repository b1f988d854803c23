# SPDX-License-Identifier: GPL-2.0-only
"""A directory that pretends to be a machine: the runner has it as its root, with stubs of systemd, kexec and a kernel.

A test kernel answers all jobs at once. ssh gets to the machine while it is up. What it starts there runs on by itself.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from foliolab.metal.machine import HOME
from tests.metal.stubs import DIRECTORIES, ENTER, FILES, HIDE, LOADER_INFO, MOMENT, ONE_SHOT, STUBS
from tests.processes import wait_until

PATIENCE_SECONDS = 120
"""How long something may take that takes a second or two where nothing else runs."""


_OF_LOADERS = ("boot/grub/custom.cfg", "boot/grub/*.kernel", "efi/foliolab*", "efi/loader/entries/*")
"""What is written for boot loaders."""


@dataclass(frozen=True)
class Pretended:
    place: Path
    """The directory with the machine's root, and with an ssh that reaches it."""

    @property
    def root(self) -> Path:
        return self.place / "root"

    @property
    def home(self) -> Path:
        """Where a bundle is."""
        return self.root / HOME.lstrip("/")

    @property
    def run(self) -> Path:
        """What the runner keeps of its run."""
        return self.home / "run"

    def argv(self, *command: str) -> list[str]:
        """The command line that executes a command on the machine."""
        # Others than root cannot write to /usr anyway.
        alone, usr = (["--user", "--map-root-user"], "keep") if os.geteuid() else ([], "protect")
        return ["unshare", *alone, "--mount", "sh", "-ec", ENTER, "sh", str(self.root), usr, *command]

    def called(self, *command: str) -> "subprocess.CompletedProcess[bytes]":
        """Execute a command on the machine; returns how it ended."""
        return subprocess.run(self.argv(*command), stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def runner(self, *words: str) -> bytes:
        done = self.called("sh", f"{HOME}/runner", *words)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def called_without(self, programs: Sequence[str], *command: str) -> "subprocess.CompletedProcess[bytes]":
        """The same on a machine that lacks some programs."""
        for name in programs:
            (self.root / "stubs" / name).unlink(missing_ok=True)
        return self.called("sh", "-ec", HIDE, "sh", " ".join(programs), *command)

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def stub(self, name: str, text: str) -> None:
        """Install a program on the machine."""
        _write_program(self.root / "stubs" / name, MOMENT + text)

    def has(self, name: str) -> bool:
        return (self.root / name).exists()

    def kill_after(self, programs: int, sent: signal.Signals) -> None:
        """Have all processes of the unit get a signal when it has started so many programs."""
        (self.root / "state/kill").write_text(f"{programs} {sent.name.removeprefix('SIG')}\n")

    def was_killed(self) -> bool:
        """Wait until the run ends or the unit is killed. Returns true if it was killed."""
        assert wait_until(lambda: self.ended or self.has("state/killed"), PATIENCE_SECONDS), (
            self.run / "journal"
        ).read_text()
        (self.root / "state/kill").unlink(missing_ok=True)
        group = self._number("state/killed")
        if group:
            assert wait_until(lambda: not _processes_of(group), PATIENCE_SECONDS)
            (self.root / "state/killed").unlink()
        return group != 0

    def journal_of_run(self, *options: str) -> str:
        """Start the bundle that is there, and wait until the run ends. Returns its journal."""
        self.runner("start", "--no-watchdog", "--pause", "0", *options)
        return self.journal_at_end()

    def journal_at_end(self) -> str:
        """Wait until the run ends. Returns its journal."""
        assert wait_until(lambda: self.ended, PATIENCE_SECONDS), (self.run / "journal").read_text()
        return (self.run / "journal").read_text()

    def put_back(self) -> str:
        """Wait until the run ends, and nothing of it is left. Returns its journal."""
        journal = self.journal_at_end()
        assert self.left() == []
        return journal

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to be done."""
        return (self.run / "ended").exists() and not self.has("state/pid")

    def left(self) -> Sequence[Path]:
        """What a run has made and not put back."""
        names = ("etc/systemd/system/*", "data", "programs", *_OF_LOADERS, ONE_SHOT.lstrip("/"))
        states = (f"state/{name}" for name in ("enabled", "loaded", "next", "pid"))
        return [path for name in (*names, *states) for path in self.root.glob(name)] + list(self.run.glob("disk*"))

    @property
    def started(self) -> int:
        """How many kernels of the bundle were started."""
        return len((self.root / "state/boots").read_text().splitlines()) if self.has("state/boots") else 0

    def need_initramfs(self) -> None:
        """Have its root file system on what no kernel finds by itself."""
        self.stub("lsblk", "case $* in *PARTUUID*) ;; *TYPE*) echo part ;; *) echo Disk ;; esac\n")
        self.stub("uname", '[ "$1" != -r ] || exec echo 6.1\nexec /usr/bin/uname "$@"\n')
        self.write("boot/initrd.img-6.1", "finds the root")

    def start_by_grub(self) -> None:
        """Have the machine's kernel start no other, and a menu of GRUB's."""
        self.write("proc/sys/kernel/kexec_load_disabled", "1\n")
        self.write("boot/grub/grub.cfg", "if [ next_entry ]\nsource custom.cfg\n")

    def start_by_systemd_boot(self) -> None:
        """Have the machine's kernel start no other, and systemd-boot as the boot loader."""
        self.write("proc/sys/kernel/kexec_load_disabled", "1\n")
        self.write(LOADER_INFO.lstrip("/"), "0000" + "\0".join("systemd-boot 252"))
        (self.root / "efi/loader/entries").mkdir(parents=True)

    def fall_back(self, times: int) -> None:
        """Have its own kernel start so many times where another one was to start."""
        self.write("state/falls", f"{times}\n")

    def stay_up(self, status: int) -> None:
        """Have systemctl kexec do nothing but to exit with this status."""
        self.write("state/stays", f"{status}\n")

    def cut_power(self) -> None:
        """Lose of each file what was not synced, and start again. The machine has to be up, and its unit killed."""
        synced = dict(line.split(" ", 1) for line in (self.root / "state/synced").read_text().splitlines())
        synced_alone = [file for name in ("etc/systemd/system/*", *_OF_LOADERS) for file in self.root.glob(name)]
        for file in (*self.run.rglob("*"), *synced_alone):
            # The data of disks is synced by dd.
            if file.is_file() and not file.name.startswith("disk"):
                status = file.stat()
                size, _, written = synced.get(str(status.st_ino), "0 0.0").partition(" ")
                if written != f"{status.st_mtime_ns // 10**9}.{status.st_mtime_ns % 10**9:09}0":
                    os.truncate(file, min(int(size), status.st_size))
        self.write("proc/sys/kernel/random/boot_id", f"{time.time_ns()}\n")
        if self.has("state/next"):
            assert self.called("reboot").returncode == 0
            return
        for name in ("state/pid", "state/loaded"):
            (self.root / name).unlink(missing_ok=True)
        if self.has("state/enabled"):
            assert self.called("systemctl", "start").returncode == 0

    def _number(self, name: str) -> int:
        try:
            return int((self.root / name).read_text() or 0)
        except (FileNotFoundError, ValueError):
            return 0

    def switch_off(self) -> None:
        (self.root / "state/enabled").unlink(missing_ok=True)
        for name in ("state/rebooting/pid", "state/starting/pid", "state/pid", "state/killed"):
            if group := self._number(name):
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)


def _processes_of(group: int) -> list[str]:
    """The living processes of a group, without zombies."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, leader, *_ = stat.read_text().rpartition(")")[2].split()
            if int(leader) == group and state != "Z":
                found.append(stat.parent.name)
    return found


@contextmanager
def pretended(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pretended]:
    """A new machine in an empty directory. ssh reaches it inside the block."""
    machine = Pretended(place)
    for name in DIRECTORIES:
        (machine.root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        (machine.root / name).symlink_to(f"usr/{name}")
    for name, text in FILES.items():
        machine.write(name, text)
    for name, text in STUBS.items():
        machine.stub(name, text)
    if b"unshare failed" in machine.called("true").stderr:
        pytest.skip("no namespaces can be made here")
    (place / "bin").mkdir()
    argv = machine.argv("sh", "-c", '"$command"')
    words = " ".join(word if word == '"$command"' else f"'{word}'" for word in argv)
    _write_program(
        place / "bin/ssh", f"[ ! -e {machine.root}/state/down ] || exit 255\nfor command; do :; done\nexec {words}\n"
    )
    monkeypatch.setenv("PATH", f"{place / 'bin'}:{os.environ['PATH']}")
    try:
        yield machine
    finally:
        machine.switch_off()


def _write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)

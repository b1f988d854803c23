# SPDX-License-Identifier: GPL-2.0-only
"""A directory that pretends to be a machine: the runner has it as its root, with stubs of systemd, kexec and a kernel.

A test kernel answers all jobs at once. ssh gets to the machine while it is up. What it starts there runs on by itself.
"""

import base64
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
from tests.processes import wait_until

LINE = b'{"seconds": 0.5, "read_bytes": 4096, "floor_bytes": 4096}'
"""What every program prints there."""
PATIENCE_SECONDS = 120
"""How long something may take that takes a second or two where nothing else runs."""

_ENTER = """\
mount --rbind /usr "$1/usr"
if [ "$2" = protect ]; then mount -o remount,bind,ro "$1/usr"; fi
mount --bind /dev/null "$1/dev/null"
root=$1
shift 2
exec chroot "$root" /usr/bin/env -i PATH=/stubs:/usr/bin:/usr/sbin "$@"
"""

_FILES = {
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro quiet\n",
    "proc/cpuinfo": "model name\t: Fast\n",
    "proc/iomem": "00001000-0009ffff : System RAM\n00100000-ffffffff : System RAM\n",
    "proc/meminfo": "MemTotal: 4194304 kB\n",
    "proc/sys/kernel/kexec_load_disabled": "0\n",
    "proc/sys/kernel/random/boot_id": "0\n",
    "sys/module/watchdog/parameters/stop_on_reboot": "0\n",
    "state/free": "99999999\n",
    "state/shell": "/bin/sh\n",
    "state/size": "2097152\n",
    "dev/null": "",
    "dev/zero": "\0" * (1 << 20),
}
_DIRECTORIES = ("usr", "etc/systemd/system", "run/systemd/system", "sys/block", "var/lib", "state", "stubs", "tmp")

_ANSWERS = r"""s/.*"id": \(-\{0,1\}[0-9]*\), "step": \([0-9]*\),.*/{"event": "start", "id": \1, "step": \2}\
{"event": "output", "id": \1, "fd": 1, "data": "DATA"}\
{"event": "exit", "id": \1, "status": 0, "signal": 0, "oom_kills": 0, "cpu_us": 1}/p"""

_MOMENT = """\
if [ -n "${UNIT:-}" ] && read -r left signal 2>/dev/null </state/kill; then
	if [ "$left" -gt 0 ]; then
		echo "$((left - 1)) $signal" >/state/kill.$$
		/usr/bin/mv /state/kill.$$ /state/kill
	else
		/usr/bin/rm /state/kill
		/usr/bin/mv /state/pid /state/killed
		kill -s "$signal" -- "-$(/usr/bin/cat /state/killed)"
	fi
fi
"""
"""The start of each stub: kills the unit if its count of programs has run out. Two stubs of a pipe run at once."""

_STUBS = {
    "systemctl": """\
for verb; do case $verb in --*) ;; *) break ;; esac; done
unit=/etc/systemd/system/foliolab-metal.service
case $verb in
start)
	[ -e $unit ] || exit 5
	[ ! -e /state/pid ] || exit 0
	echo >/state/pid
	command=$(sed -n 's/^ExecStart=//p' $unit)
	read -r shell </state/shell
	UNIT=1 setsid sh -c "echo \\$\\$ >/state/pid; $shell ${command#* }; rm -f /state/pid" </dev/null >>/state/log 2>&1 &
	;;
stop)
	[ ! -s /state/pid ] || kill -s TERM -- "-$(cat /state/pid)"
	rm -f /state/pid
	;;
is-active) [ -e /state/pid ] ;;
enable) : >/state/enabled ;;
disable) [ -e $unit ] && rm -f /state/enabled ;;
kexec)
	[ ! -e /state/stays ] || exit "$(cat /state/stays)"
	: >/state/down
	UNIT='' setsid reboot </dev/null >>/state/log 2>&1 &
	;;
esac
""",
    "reboot": f"""\
mkdir /state/rebooting 2>/dev/null || exit 0
echo $$ >/state/rebooting/pid
[ ! -s /state/pid ] || kill -s KILL -- "-$(cat /state/pid)"
rm -f /state/pid
sync
if [ -e /state/loaded ]; then
	boot=$(sed 's/.* foliolab_job=\\([^ ]*\\) .*/\\1/' /state/loaded)
	rm /state/loaded
	{{
		echo '{{"event": "ready", "page_size": 4096}}'
		sed -n '{_ANSWERS.replace("DATA", base64.b64encode(LINE).decode())}' "$boot/requests"
		echo '{{"event": "end"}}'
	}} >"$boot/answers"
	sync
	echo "$boot" >>/state/boots
fi
date +%s%N >/proc/sys/kernel/random/boot_id
[ ! -e /state/enabled ] || systemctl start
rm -rf /state/down /state/rebooting
""",
    "kexec": """\
case $1 in
-l) echo "$*" >/state/loaded ;;
-u) rm -f /state/loaded ;;
esac
""",
    "lsblk": """\
case $* in
*PARTUUID*) echo 1234 ;;
*TYPE*) echo part ;;
*MOUNTPOINT*) [ ! -e /state/mounted ] || cat /state/mounted ;;
*NAME*) echo vdb && [ ! -e /state/partition ] || echo vdb1 ;;
*SIZE*) cat /state/size ;;
*) echo "Disk nvme" ;;
esac
""",
    "findmnt": "case $* in *SOURCE*) echo /dev/vda1 ;; *) echo ext4 ;; esac\n",
    "df": "echo Avail; cat /state/free\n",
    "journalctl": "tail -n 5 /state/log\n",
    "blkid": "exit 2\n",
    "sync": """\
[ $# -gt 0 ] || set -- /var/lib /etc/systemd/system
find "$@" -type f -printf '%i %s %T@\\n' >>/state/synced
""",
    **dict.fromkeys(("losetup", "wdctl", "wipefs"), ""),
    **{name: f'exec /usr/bin/{name} "$@"\n' for name in ("cat", "cp", "dd", "gzip", "mkdir", "mv", "rm", "rmdir")},
}


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
        return ["unshare", *alone, "--mount", "sh", "-ec", _ENTER, "sh", str(self.root), usr, *command]

    def called(self, *command: str) -> "subprocess.CompletedProcess[bytes]":
        """Execute a command on the machine; returns how it ended."""
        return subprocess.run(self.argv(*command), stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def runner(self, *words: str) -> bytes:
        done = self.called("sh", f"{HOME}/runner", *words)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def stub(self, name: str, text: str) -> None:
        """Install a program on the machine."""
        _write_program(self.root / "stubs" / name, _MOMENT + text)

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

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to be done."""
        return (self.run / "ended").exists() and not self.has("state/pid")

    def left(self) -> Sequence[Path]:
        """What a run has made and not put back."""
        names = ("etc/systemd/system/*", "data", "programs", "state/enabled", "state/loaded", "state/pid")
        return [path for name in names for path in self.root.glob(name)] + list(self.run.glob("disk*"))

    def stay_up(self, status: int) -> None:
        """Have systemctl kexec do nothing but to exit with this status."""
        self.write("state/stays", f"{status}\n")

    def cut_power(self) -> None:
        """Lose of each file what was not synced, and start again. The machine has to be up, and its unit killed."""
        synced = dict(line.split(" ", 1) for line in (self.root / "state/synced").read_text().splitlines())
        for file in (*self.run.rglob("*"), *self.root.glob("etc/systemd/system/*")):
            # The data of disks is synced by dd.
            if file.is_file() and not file.name.startswith("disk"):
                status = file.stat()
                size, _, written = synced.get(str(status.st_ino), "0 0.0").partition(" ")
                if written != f"{status.st_mtime_ns // 10**9}.{status.st_mtime_ns % 10**9:09}0":
                    os.truncate(file, min(int(size), status.st_size))
        self.write("proc/sys/kernel/random/boot_id", f"{time.time_ns()}\n")
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
        for name in ("state/rebooting/pid", "state/pid", "state/killed"):
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
    for name in _DIRECTORIES:
        (machine.root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        (machine.root / name).symlink_to(f"usr/{name}")
    for name, text in _FILES.items():
        machine.write(name, text)
    for name, text in _STUBS.items():
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

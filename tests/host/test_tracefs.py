# SPDX-License-Identifier: GPL-2.0-only
"""An instance of this machine's tracefs: who is recorded, what is cut, and what is left."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost import fault_around, faults
from foliohost import tracefs as live_tracefs
from foliohost.errors import FolioError, NotPermitted, UsageError
from foliohost.processes import PAGE_BYTES, descendants, tasks_of
from foliohost.record import record
from foliohost.spool import Spool
from foliohost.target import StartedProgram
from foliohost.touches import ADD, FIELDS, MAP, USER
from foliohost.tracefs import Instance, tracefs
from foliolab.vm.guest import GuestConfig
from tests.host.command import ARGV, ENVIRONMENT, host
from tests.host.conftest import Toucher
from tests.host.test_reset import booted, config
from tests.host.tracing import here, instances
from tests.processes import wait_until

__all__ = ["config"]

TAKE_TURNS = """
import mmap, os, sys
own, other = map(int, sys.argv[2:4])
os.sched_setaffinity(0, {int(sys.argv[4])})
with open(sys.argv[1], "rb") as stream:
    print(flush=True)
    while os.read(own, 1):
        with mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            mapped[0]
        os.write(other, b"x")
"""


@here
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_a_limit_cuts_all_processors_at_the_same_time(cold: Path) -> None:
    cold.read_bytes()
    ends = [os.pipe(), os.pipe()]
    processors = sorted(os.sched_getaffinity(0))[:2]
    fields = {USER: FIELDS[USER], MAP: FIELDS[MAP]}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE_TURNS, str(cold), str(ends[me][0]), str(ends[1 - me][1]), str(processors[me])],
            pass_fds=[ends[me][0], ends[1 - me][1]],
            stdout=subprocess.PIPE,
        )
        for me in (0, 1)
    ]
    try:
        for child in children:
            assert child.stdout and child.stdout.read(1)
        spool = Spool()

        def much() -> bool:
            spool.add(instance.fetch())
            return spool.size >= 64 << 10

        with Instance(fields) as instance:
            instance.start([child.pid for child in children])
            os.write(ends[0][1], b"x")
            # Each turn takes both processors, which others may want as well.
            assert wait_until(much, 300)
            instance.stop()
            spool.add(instance.fetch())
        # Python touches files of its own.
        inode = cold.stat().st_ino
        events = spool.events(instance.parsed)
        touched = [fields[0] for _, name, fields in events if name == MAP and fields[2] == inode]
    finally:
        for child in children:
            child.kill()
            child.communicate()
        for end in (*ends[0], *ends[1]):
            os.close(end)
    turns = [touched.count(child.pid) for child in children]
    assert min(turns) > 300
    assert abs(turns[0] - turns[1]) <= 1


@here
def test_a_container_has_other_process_numbers() -> None:
    code = "from foliohost.tracefs import tracefs; tracefs()"
    argv = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code]
    done = subprocess.run(argv, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "this container has its own." in done.stderr


KILLED = """
import os, pathlib, signal
from foliohost.touches import ADD, FIELDS
from foliohost.tracefs import Instance
make = pathlib.Path.mkdir
def made_and_killed(*words, **options):
    make(*words, **options)
    os.kill(os.getpid(), signal.SIGKILL)
pathlib.Path.mkdir = made_and_killed
with Instance({ADD: FIELDS[ADD]}):
    pass
"""


@here
def test_a_kill_before_anything_is_recorded_leaves_nothing() -> None:
    killed = subprocess.Popen([sys.executable, "-c", KILLED], env=ENVIRONMENT)
    assert killed.wait() == -signal.SIGKILL
    assert wait_until(lambda: not instances(killed.pid))


@here
def test_a_signal_between_two_steps_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(live_tracefs, "raise_limit", interrupted)
    with pytest.raises(KeyboardInterrupt), Instance({ADD: FIELDS[ADD]}):
        pass
    assert instances(os.getpid()) == []


def test_nothing_is_changed_without_somebody_to_clean_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "instances").mkdir()
    monkeypatch.setattr(live_tracefs, "tracefs", lambda: tmp_path)
    monkeypatch.setattr(live_tracefs, "_CLEAN_UP", "exit 1")
    monkeypatch.setattr(Instance, "_set_up", lambda self: None)
    with pytest.raises(FolioError, match=r"^Nothing is recorded"), Instance({}):
        pass
    assert list((tmp_path / "instances").iterdir()) == []


def test_a_kernel_that_is_locked_down_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "instances").mkdir()
    monkeypatch.setattr(live_tracefs, "tracefs", lambda: tmp_path)

    def locked(self: Instance, name: str, text: str, flags: int = 0) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), name)

    def set_up(self: Instance) -> None:
        self._write("tracing_on", "0")

    monkeypatch.setattr(Instance, "_write", locked)
    monkeypatch.setattr(Instance, "_set_up", set_up)
    with pytest.raises(NotPermitted, match=r"^The kernel lets nobody trace here: it is locked down"), Instance({}):
        pass
    assert list((tmp_path / "instances").iterdir()) == []


@here
def test_nobody_to_record_is_not_everybody() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    with Instance({ADD: FIELDS[ADD]}) as instance:
        with pytest.raises(UsageError, match=r"^What was to be recorded has ended\.$"):
            instance.start([gone.pid])
        (ours,) = instances(os.getpid())
        assert (ours / "tracing_on").read_text() == "0\n"


@here
def test_many_threads_and_one_that_comes_meanwhile(
    cold: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = start(cold)
    program.tell("threads 1500")
    listed: list[int] = []

    def one_more_comes(pids: Iterable[int]) -> list[int]:
        found = tasks_of(pids)
        if not listed:
            program.tell("threads 1")
        listed[:] = found
        return found

    monkeypatch.setattr(live_tracefs, "tasks_of", one_more_comes)
    with Instance({ADD: FIELDS[ADD]}) as instance:
        instance.start([program.pid])
        assert sorted(instance.tasks()) == sorted(tasks_of([program.pid]))
        assert len(instance.tasks()) == 1502


@here
def test_a_program_that_starts_threads_all_the_time_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = 0

    def always_another(pids: Iterable[int]) -> list[int]:
        nonlocal listed
        listed += 1
        assert listed < 100
        return [*tasks_of(pids), 30_000 + listed]

    monkeypatch.setattr(live_tracefs, "tasks_of", always_another)
    with Instance({ADD: FIELDS[ADD]}) as instance:
        instance.start([os.getpid()])
        assert os.getpid() in instance.tasks()


@here
def test_what_others_have_left_is_removed(cold: Path) -> None:
    """Also if another process has the number by now."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = [tracefs() / "instances" / f"foliolab-live-{pid}-7" for pid in (gone.pid, os.getppid())]
    for stale in left:
        stale.mkdir()
    record(StartedProgram(["true"]), patterns=[str(cold)])
    assert not any(stale.exists() for stale in left)


def traces(instance: Path) -> bool:
    """Whether recording has begun; an instance that was just made is switched on as well."""
    switch, followed = (instance / name for name in ("tracing_on", "set_event_pid"))
    return followed.read_text() != "" and switch.read_text() == "1\n"


@here
def test_what_a_kill_of_the_whole_control_group_leaves_goes_with_the_next_start(cold: Path, tmp_path: Path) -> None:
    """Which takes the one who cleans up along; the instance goes on tracing."""
    argv = [*ARGV, "record", "-o", str(tmp_path / "t"), "--file", str(cold), "--", "sleep", "300"]
    with subprocess.Popen(argv) as running:
        assert wait_until(lambda: any(map(traces, instances(running.pid))))
        others = descendants(running.pid)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in (running.pid, *others):
                with suppress(ProcessLookupError):  # the program dies with us
                    os.kill(pid, number)
    (left,) = instances(running.pid)
    assert (left / "tracing_on").read_text() == "1\n"
    assert host("diagnose", "--pid", str(os.getpid()), "--seconds", "0.1").returncode == 0
    assert not left.exists()


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of its own for the lock."""
    monkeypatch.setenv("FOLIOLAB_STATE", str(tmp_path / "state"))


@pytest.mark.parametrize(("now", "after"), [(PAGE_BYTES, 65536), (16384, 16384)])
def test_what_somebody_has_set_since_a_kill_stays(
    now: int, after: int, own_state: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around, left = tmp_path / "around", tmp_path / "instances/foliolab-live-4194305-7-around-65536"
    around.write_text(f"{now}\n")
    left.mkdir(parents=True)
    monkeypatch.setattr(fault_around, "FAULT_AROUND", around)
    live_tracefs._clean_up_after_others(tmp_path, fine=False)
    assert int(around.read_text()) == after
    assert not left.exists()


@pytest.mark.parametrize("fine", [False, True])
def test_what_cannot_be_put_back_now_is_not_forgotten(
    fine: bool, own_state: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """debugfs is not mounted any more, or locked down by now."""
    around, left = tmp_path / "around", tmp_path / "instances/foliolab-live-4194305-7-around-65536"
    left.mkdir(parents=True)
    monkeypatch.setattr(fault_around, "FAULT_AROUND", around)

    def clean_up() -> None:
        if fine:
            with pytest.raises(UsageError, match="cannot be set to 65536, which a killed recording found"):
                live_tracefs._clean_up_after_others(tmp_path, fine)
        else:
            live_tracefs._clean_up_after_others(tmp_path, fine)

    clean_up()
    assert left.exists()
    around.write_text(f"{PAGE_BYTES}\n")
    with monkeypatch.context() as patch:

        def refused(path: Path, text: str) -> int:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))

        patch.setattr(Path, "write_text", refused)
        clean_up()
    assert left.exists()
    live_tracefs._clean_up_after_others(tmp_path, fine)
    assert (int(around.read_text()), left.exists()) == (65536, False)


def test_two_who_change_what_faults_map_do_not_overlap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the first one is killed, until what cleans up after it has ended."""
    monkeypatch.setenv("FOLIOLAB_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(live_tracefs, "_LOCK_SECONDS", 0.1)
    monkeypatch.setattr(live_tracefs, "tracefs", lambda: tmp_path)
    monkeypatch.setattr(fault_around, "FAULT_AROUND", tmp_path / "around")
    monkeypatch.setattr(Instance, "_set_up", lambda self: None)
    (tmp_path / "instances").mkdir()
    (tmp_path / "around").write_text("65536\n")
    taken = pytest.raises(UsageError, match=r"^Another recording with --fine is going on\.$")
    first = Instance({}, fine=True)
    with taken:
        Instance({}, fine=True)
    Instance({})
    with first:
        (held,) = first._lock
        os.close(held)  # as if we were killed
        first._lock.clear()
        with taken:
            fault_around.lock(0.1)
    os.close(fault_around.lock(60))


def test_what_another_recording_has_set_is_not_put_back(
    own_state: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One with --fine has the lock, and has faults map a page each, as the killed one had."""
    around, left = tmp_path / "around", tmp_path / "instances/foliolab-live-4194305-7-around-65536"
    around.write_text(f"{PAGE_BYTES}\n")
    left.mkdir(parents=True)
    monkeypatch.setattr(fault_around, "FAULT_AROUND", around)
    lock = fault_around.lock(0)
    live_tracefs._clean_up_after_others(tmp_path, fine=False)
    assert (int(around.read_text()), left.exists()) == (PAGE_BYTES, True)
    os.close(lock)
    live_tracefs._clean_up_after_others(tmp_path, fine=False)
    assert (int(around.read_text()), left.exists()) == (65536, False)


@pytest.mark.parametrize("kept", [False, True])
def test_what_could_not_be_put_back_is_told_of(
    kept: bool, own_state: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    around = tmp_path / "around"
    (tmp_path / "instances").mkdir()
    around.write_text("65536\n")
    monkeypatch.setattr(live_tracefs, "tracefs", lambda: tmp_path)
    monkeypatch.setattr(fault_around, "FAULT_AROUND", around)
    monkeypatch.setattr(Instance, "_set_up", lambda self: None)
    if kept:
        monkeypatch.setattr(live_tracefs, "_CLEAN_UP", "echo; read -r _")
    with Instance({}, fine=True):
        around.write_text(f"{PAGE_BYTES}\n")
    words = f"{around} could not be set back to 65536; the next recording tries it again.\n"
    assert capsys.readouterr().err == (words if kept else "")


def ignored(pid: int) -> set[int]:
    """The signals that a process ignores."""
    found = re.search(r"^SigIgn:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    bits = int(found[1], 16) if found else 0
    return {number for number in signal.valid_signals() if bits >> number - 1 & 1}


def cleaning_up(instance: Path, around: Path) -> "subprocess.Popen[bytes]":
    """The shell that waits for the end of a recording, which found 65,536 bytes."""
    argv = ["/bin/sh", "-c", live_tracefs._CLEAN_UP, "sh", str(instance), "65536", str(around), ""]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def test_who_cleans_up_outlasts_what_asks_a_whole_service_to_end(tmp_path: Path) -> None:
    """systemd sends that to all of a control group."""
    instance, around = tmp_path / "instance", tmp_path / "around"
    instance.mkdir()
    around.write_text("4096\n")
    with cleaning_up(instance, around) as watcher:
        asked = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
        assert wait_until(lambda: asked <= ignored(watcher.pid), 5)
        for number in asked:
            watcher.send_signal(number)
    assert around.read_text() == "65536\n"
    assert not instance.exists()


def test_who_cleans_up_keeps_what_has_the_old_value_until_that_is_written(tmp_path: Path) -> None:
    instance, around = tmp_path / "instance", tmp_path / "around"
    instance.mkdir()
    around.symlink_to("/dev/full")
    with cleaning_up(instance, around) as watcher:
        assert watcher.stdin
        watcher.stdin.close()
        time.sleep(0.5)
        assert instance.exists()
        around.unlink()
    assert around.read_text() == "65536\n"
    assert not instance.exists()


FEW = """
import os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (32, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from foliohost.program import start
from foliohost.touches import ADD, FIELDS
from foliohost.tracefs import Instance
while os.dup(0) < 24:  # the libraries of some Pythons have files open themselves
    pass
with Instance({ADD: FIELDS[ADD]}) as instance:
    instance.start([os.getpid()])
    print(start(["sh", "-c", "ulimit -n"], stdout=subprocess.PIPE).communicate()[0].decode(), end="")
"""


@here
def test_as_many_files_are_open_as_there_are_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are allowed at first; programs that we start are allowed no more than before."""
    done = subprocess.run([sys.executable, "-c", FEW], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("32\n", "")


@pytest.mark.boot
def test_a_machine_that_processors_can_be_added_to_is_traced(config: GuestConfig, tmp_path: Path) -> None:
    """Those that are offline have no buffers, and the others have theirs."""
    with booted(replace(config, cpus=2, boot_arguments="maxcpus=1"), tmp_path / "console") as step:
        found = json.loads(step("processors"))
    assert found == {"places": 2, "buffer_bytes": faults.BUFFERS_KIB << 10, "untraced": ""}


def test_a_processor_without_a_buffer_has_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what else is wrong with a buffer is told."""

    def failing(handle: int, size: int) -> bytes:
        raise OSError(handle, os.strerror(handle))

    instance = Instance.__new__(Instance)
    instance.buffer_bytes, instance._handles = PAGE_BYTES, [errno.ENODEV, errno.EAGAIN, errno.EIO]
    monkeypatch.setattr(os, "read", failing)
    offline, empty, broken = instance.fetch()
    assert (list(offline), list(empty)) == ([], [])
    with pytest.raises(OSError, match="Input/output error"):
        next(broken)

# SPDX-License-Identifier: GPL-2.0-only
"""Kills at any moment of a cure: afterwards windows are what the state lists, or what they were; and of a recording.

``$FOLIOLAB_KILLS`` is the number of kills in each test; few by default, because each takes half a second.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from foliohost import windows
from foliohost.cures import apply_to_device, apply_to_open_files, undo
from foliohost.devices import HostDevice, device_of
from foliohost.fault_around import fault_around_bytes
from foliohost.processes import descendants
from foliohost.state import applied, changing
from foliohost.windows import open_in, set_device
from tests.host.command import ARGV, ENVIRONMENT, host
from tests.host.conftest import Toucher
from tests.host.tracing import here, instances
from tests.host.windows import read_kb
from tests.processes import wait_until

KILLS = int(os.environ.get("FOLIOLAB_KILLS", "10"))
BEFORE_KB = 1024
_PACKAGE = str(Path(windows.__file__).parent)


@dataclass
class Machine:
    """A device of ours, a file on it, and a program that has it open."""

    path: Path
    device: HostDevice
    program: Toucher
    state: Path

    def check(self) -> None:
        """All is as the state lists it, once nothing is half done."""
        with changing():
            pass
        listed = {cure.pid: cure.read_ahead_kb for cure in applied()}
        assert self.device.read_ahead_kb == listed.get(None, BEFORE_KB)
        assert read_kb(self.program, self.path) == listed.get(self.program.pid, BEFORE_KB)

    def cure_device(self) -> None:
        apply_to_device(self.path, 256)

    def cure_file(self) -> None:
        apply_to_open_files([open_in(self.program.pid, self.path)], self.device, 64)


@pytest.fixture
def machine(
    tmp_path: Path, private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> Machine:
    monkeypatch.setenv("FOLIOLAB_STATE", str(tmp_path / "state"))
    path = private_disk / "file"
    device = device_of(path)
    set_device(device.attribute, BEFORE_KB)
    return Machine(path, device, start(path), tmp_path / "state")


def undo_all() -> None:
    list(undo(lambda cure: True))


def forked(act: Callable[[], object]) -> int:
    """The number of a child that does this and no more."""
    child = os.fork()
    if not child:
        try:
            act()
        finally:
            os._exit(0)
    return child


def killed_in_line(number: int, act: Callable[[], object]) -> bool:
    """Run something in a child that is killed before it comes to so many lines of the tools; whether it was."""
    left = number

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        left -= event == "line"
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return count

    def traced() -> None:
        sys.settrace(count)
        act()

    _, status = os.waitpid(forked(traced), 0)
    return os.WIFSIGNALED(status)


def lines_of(act: Callable[[], object]) -> int:
    """How many lines of the tools it takes, for which it is done."""
    seen = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        seen += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        act()
    finally:
        sys.settrace(before)
    return seen


def test_a_kill_before_any_line(machine: Machine) -> None:
    def cure_both() -> None:
        machine.cure_device()
        machine.cure_file()

    chance = random.Random(1)
    acts = (machine.cure_device, machine.cure_file, undo_all)
    cure_both()
    lines = {act: lines_of(act) for act in acts}
    killed = 0
    for number in range(KILLS):
        act = acts[number % len(acts)]
        (cure_both if act == undo_all else undo_all)()
        killed += killed_in_line(chance.randrange(lines[act]), act)
        machine.check()
    assert killed >= KILLS / 2
    undo_all()
    assert machine.device.read_ahead_kb == BEFORE_KB
    assert read_kb(machine.program, machine.path) == BEFORE_KB


def test_a_kill_of_the_command_or_of_its_group(machine: Machine) -> None:
    chance = random.Random(1)
    of_file = ["--file", str(machine.path)]
    commands = (
        ["apply", "--read-ahead-kb", "64", *of_file],
        ["apply", "--read-ahead-kb", "256", "--device-of", str(machine.path)],
        ["undo", *of_file],
        ["undo"],
    )
    seconds = 0.5
    for number in range(KILLS):
        argv = [*ARGV, "cure", *commands[number % len(commands)]]
        began = time.monotonic()
        running = subprocess.Popen(
            argv,
            env=ENVIRONMENT | {"FOLIOLAB_STATE": str(machine.state)},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            running.communicate(timeout=chance.random() * seconds)
            seconds = time.monotonic() - began
        except subprocess.TimeoutExpired:
            (os.killpg if number % 2 else os.kill)(running.pid, signal.SIGKILL)
            running.communicate()
            seconds = max(seconds, 0.5) * 1.1
        machine.check()


def stopped_in_the_moment(machine: Machine) -> int:
    """A child that cures the file, and stops while the device has its window."""

    def act() -> None:
        os.posix_fadvise = lambda *words: time.sleep(600)
        machine.cure_file()

    child = forked(act)
    assert wait_until(lambda: machine.device.read_ahead_kb == 64)
    return child


def test_the_keeper_puts_back_what_a_kill_in_the_moment_leaves(machine: Machine) -> None:
    child = stopped_in_the_moment(machine)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert wait_until(lambda: machine.device.read_ahead_kb == BEFORE_KB)
    assert wait_until(lambda: '"change": null' in (machine.state / "state.json").read_text())
    machine.check()


@pytest.fixture
def group() -> Path:
    """A control group that can be killed as a whole, as systemd does it."""
    for top in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        place = top / f"foliolab-test-{os.getpid()}"
        if (top / "cgroup.procs").exists() and os.access(top, os.W_OK):
            place.mkdir()
            if (place / "cgroup.kill").exists():
                return place
            place.rmdir()
    pytest.skip("no control group here can be killed")


def test_the_keeper_survives_the_control_group(machine: Machine, group: Path) -> None:
    def act() -> None:
        (group / "cgroup.procs").write_text("0")
        os.waitpid(stopped_in_the_moment(machine), 0)

    child = forked(act)
    assert wait_until(lambda: machine.device.read_ahead_kb == 64)
    (group / "cgroup.kill").write_text("1")
    os.waitpid(child, 0)
    assert wait_until(lambda: machine.device.read_ahead_kb == BEFORE_KB)
    assert wait_until(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


@here
def test_nothing_of_a_recording_survives_the_control_group(group: Path, cold: Path, tmp_path: Path) -> None:
    argv = [*ARGV, "record", "-o", str(tmp_path / "t"), "--file", str(cold), "--", "sleep", "300"]
    script = f'echo 0 >"{group}/cgroup.procs"; exec "$@"'
    with subprocess.Popen(["sh", "-c", script, "sh", *argv]) as running:
        assert wait_until(lambda: any((each / "set_event_pid").read_text() for each in instances(running.pid)))
        (group / "cgroup.kill").write_text("1")
    assert wait_until(lambda: not instances(running.pid))
    assert wait_until(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def with_all_below(pid: int) -> None:
    """Kill a process and all that it has started, as a kill of its control group does."""
    others = descendants(pid)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for each in (pid, *others):
            with suppress(ProcessLookupError):
                os.kill(each, number)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def kill_group(pid: int) -> None:
    os.killpg(pid, signal.SIGKILL)


@here
def test_a_kill_of_a_recording_leaves_nothing_behind_the_next_start(cold: Path, tmp_path: Path) -> None:
    """Of the tool, of its process group, and of all that it has started, the one who cleans up among them."""
    chance, around = random.Random(1), fault_around_bytes()
    ways = (kill, kill_group, with_all_below)
    out, killed, left = tmp_path / "out", [], 0
    fine = ["--fine"] if around else []
    argv = [*ARGV, "record", *fine, "-o", str(out), "--file", str(cold), "--", "sleep", "300"]
    seconds = 1.0
    for number in range(KILLS):
        began = time.monotonic()
        running = subprocess.Popen(argv, start_new_session=True)
        killed.append(running.pid)
        if number < 3:  # how long it takes to record
            assert wait_until(lambda pid=running.pid: bool(instances(pid)), 60)  # type: ignore[misc]
            seconds = max(seconds, (time.monotonic() - began) * 2)
        else:
            time.sleep(chance.random() * seconds)
        ways[number % len(ways)](running.pid)
        running.communicate()
        left += len(instances(running.pid))
    print(f"{left} of {KILLS} left an instance for a moment, or until the next start")
    assert host("diagnose", "--pid", str(os.getpid()), "--seconds", "0.1").returncode == 0
    assert wait_until(lambda: not any(instances(pid) for pid in killed))
    assert fault_around_bytes() == around
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir()] == [cold.name]

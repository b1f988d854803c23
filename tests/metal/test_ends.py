# SPDX-License-Identifier: GPL-2.0-only
"""How a run ends where something fails, and where two things happen at once: the machine is as before."""

import shutil

import pytest

from foliolab.metal.machine import HOME
from tests.metal.lab import BOOTS, Lab
from tests.metal.pretended import PATIENCE_SECONDS, Pretended
from tests.processes import wait_until

UNIT = "etc/systemd/system/foliolab-metal.service"


@pytest.fixture
def begun(lab: Lab, pretence: Pretended) -> Pretended:
    """A machine with a run under way, which has a watchdog. The runner waits only while the machine goes down."""
    lab.bundle(pretence.home)
    options(pretence)
    for name in ("asked", "journal"):
        (pretence.run / name).touch()
    pretence.write("dev/watchdog", "")
    pretence.stub("sleep", '[ -e /state/stays ] || [ "$1" -lt 60 ] || exec /usr/bin/sleep "$1"\n')
    pretence.called("sync")
    return pretence


def options(machine: Pretended, identity: str = "", watchdog: str = "yes") -> None:
    words = f"spare='/dev/vdb' identity='{identity}'" if identity else "spare='' identity=''"
    (machine.run / "options").write_text(f"{words} watchdog={watchdog} lease=0 pause=0\n")


@pytest.mark.parametrize(
    ("status", "reason"), [(1, "kexec does not work"), (0, "the machine does not go down")], ids=["fails", "hangs"]
)
def test_a_machine_that_stays_up_starts_its_own_kernel_next(begun: Pretended, status: int, reason: str) -> None:
    begun.stay_up(status)
    begun.runner("resume")
    assert f"end: {reason}" in begun.put_back()
    assert (begun.root / "dev/watchdog").read_text() == "V"
    # What was asked of systemd may still be done.
    assert begun.called("reboot").returncode == 0
    assert not begun.has("state/boots")
    assert not [*begun.run.glob("boots/*/started")]


def test_stop_takes_back_the_kernel_and_the_watchdog(begun: Pretended) -> None:
    begun.stay_up(0)
    begun.stub("sleep", '[ "$1" -lt 60 ] || exec /usr/bin/sleep "$1"\n')
    begun.runner("resume")
    assert wait_until(lambda: (begun.root / "dev/watchdog").read_text() == "\n", PATIENCE_SECONDS)
    begun.runner("stop")
    assert "end: told to stop" in begun.put_back()
    assert (begun.root / "dev/watchdog").read_text() == "V"
    assert not [*begun.run.glob("boots/*/started")]


def test_a_watchdog_that_takes_less_time_is_left_alone(begun: Pretended) -> None:
    begun.stub("wdctl", "exit 1\n")
    begun.runner("resume")
    said = begun.put_back()
    assert said.count("no watchdog from kernel to kernel: it cannot be set to 600 seconds") == BOOTS
    assert (begun.root / "dev/watchdog").read_text() == ""


def test_a_watchdog_that_was_not_armed_is_not_touched(begun: Pretended) -> None:
    # To open one arms it, and some cannot be stopped any more.
    begun.write("sys/module/watchdog/parameters/stop_on_reboot", "1\n")
    begun.runner("resume")
    said = begun.put_back()
    why = "this one was booted without watchdog.stop_on_reboot=0"
    assert said.count(f" no watchdog from kernel to kernel: {why}\n") == BOOTS
    assert (begun.root / "dev/watchdog").read_text() == ""


def test_nothing_is_said_of_a_watchdog_that_nobody_wants(begun: Pretended) -> None:
    begun.write("sys/module/watchdog/parameters/stop_on_reboot", "1\n")
    options(begun, watchdog="no")
    begun.runner("resume")
    assert "watchdog from kernel to kernel" not in begun.put_back()


def test_what_begins_after_the_end_removes_its_unit(begun: Pretended) -> None:
    begun.runner("resume")
    begun.put_back()
    begun.write(UNIT, f"ExecStart=/bin/sh {HOME}/runner go\n")
    assert begun.called("systemctl", "enable").returncode == 0
    begun.runner("go")
    begun.put_back()


def test_stop_removes_the_unit_of_a_run_that_somebody_has_removed(begun: Pretended) -> None:
    begun.stub("sleep", ": >/state/pauses\nexec /usr/bin/sleep 60\n")
    begun.runner("resume")
    assert wait_until(lambda: begun.has("state/enabled") and begun.has("state/pauses"), PATIENCE_SECONDS)
    shutil.rmtree(begun.run)
    begun.runner("stop")
    assert [path.name for path in begun.left()] == ["data", "programs"]


def test_stop_does_nothing_where_there_was_no_run(begun: Pretended) -> None:
    (begun.run / "journal").unlink()
    begun.runner("stop")
    assert begun.left() == []
    assert not (begun.run / "stop").exists()


def test_a_boot_that_will_not_be_tried_again_has_not_begun(begun: Pretended) -> None:
    boot, *_ = sorted((begun.run / "boots").iterdir())
    (boot / "started").write_text("in an earlier boot of this machine\n")
    (begun.run / "stop").touch()
    begun.runner("go")
    said = begun.put_back()
    assert f" once more {boot.name}: nothing was heard of its kernel\n" in said
    assert "end: told to stop" in said
    assert not [*begun.run.glob("boots/*/started"), *begun.run.glob("boots/*/outcome")]


def test_a_run_that_is_being_stopped_is_not_resumed(begun: Pretended) -> None:
    # The spare device is gone, so that whoever stops the run waits. Meanwhile the lab asks.
    options(begun, "8-S1", watchdog="no")
    (begun.run / "journal").write_text("earlier disk /dev/vdb of 4096 bytes\n")
    begun.stub("sleep", f'[ "$1" -eq 0 ] || [ -e /state/asked ] || {{ : >/state/asked; sh {HOME}/runner resume; }}\n')
    begun.runner("stop")
    assert "end: told to stop" in begun.put_back()
    assert begun.has("state/asked")


def test_a_power_cut_near_the_end_leaves_nothing_behind(begun: Pretended) -> None:
    cut = "[ -e /state/cut ] || { : >/state/cut; kill -s KILL 0; }"
    begun.stub("rmdir", f'{cut}\nexec /usr/bin/rmdir "$@"\n')
    begun.runner("resume")
    assert wait_until(lambda: begun.has("state/cut"), PATIENCE_SECONDS)
    begun.cut_power()
    assert "end: all is done" in begun.put_back()

# SPDX-License-Identifier: GPL-2.0-only
"""Kills at random moments, of the lab and of the runner: no result is lost, and no file is left behind."""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foliolab.campaign.store import read_samples
from foliolab.errors import HostLost, LabError
from foliolab.metal.answers import result_samples
from tests.metal.lab import BOOTS, Lab
from tests.metal.pretended import Pretended, pretended

LIMIT = 50
"""How often something is repeated at most, so that a test ends in any case."""


def forked(work: Callable[[], object]) -> int:
    """Fork a process that does ``work``. Returns its PID; it exits with the status of an error."""
    if process := os.fork():
        return process
    status = 99
    try:
        work()
        status = 0
    except LabError as error:
        print(error, file=sys.stderr)
        status = error.status
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def test_a_lab_that_is_killed_takes_up_what_was_measured(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = random.Random(1)
    for number in range(4):
        lab.store.unlink(missing_ok=True)
        with machine_with_loader(number, tmp_path, monkeypatch) as machine:
            for _ in range(5):
                process = forked(lab.measure)
                time.sleep(moments.uniform(0, 0.4))
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            finish(lab)
            assert machine.ended
            assert machine.left() == []
            # Nothing was measured twice.
            assert len((machine.root / "state/boots").read_text().splitlines()) == BOOTS


@contextmanager
def machine_with_loader(number: int, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pretended]:
    """A machine in a directory of its own. They have GRUB, systemd-boot and kexec by turns."""
    with pretended(place / str(number), monkeypatch) as machine:
        if number % 3 == 1:
            machine.start_by_grub()
        if number % 3 == 2:
            machine.start_by_systemd_boot()
        yield machine


def finish(lab: Lab) -> None:
    """Measure what is missing. A machine that measures does not answer."""
    for _ in range(LIMIT):
        status = os.waitstatus_to_exitcode(os.waitpid(forked(lab.measure), 0)[1])
        if status == 0:
            break
        assert status == HostLost.status
    else:
        pytest.fail(f"The machine was lost {LIMIT} times.")
    samples = read_samples(lab.store)
    assert [sample.outcome for sample in samples] == ["ok"] * len(lab.plan.steps)
    assert len({sample.key for sample in samples}) == len(samples)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_runner_that_is_killed_goes_on_and_puts_all_back(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    """On some distributions, /bin/sh is bash."""
    moments = random.Random(2)
    kills = 0
    for number in range(LIMIT):
        if kills >= 20:
            break
        with machine_with_loader(number, tmp_path, monkeypatch) as machine:
            machine.write("state/shell", f"/bin/{shell}\n")
            lab.bundle(machine.home)
            verb = ["start", "--no-watchdog", "--pause", "0"]
            for _ in range(LIMIT):
                if machine.ended:
                    break
                machine.kill_after(moments.randrange(30), moments.choice((signal.SIGTERM, signal.SIGKILL)))
                machine.runner(*verb)
                kills += machine.was_killed()
                verb = ["resume"]
            assert machine.left() == []
            assert " left: " not in (machine.run / "journal").read_text()
            assert set(outcomes(lab, machine, tmp_path / f"{number}/result")) == {"ok"}
    assert kills >= 20


def outcomes(lab: Lab, machine: Pretended, place: Path) -> list[str]:
    """What the machine has for the steps, each of which has one result."""
    archive = machine.place / "result.tar.gz"
    archive.write_bytes(machine.runner("result"))
    samples = result_samples(archive, place, pytest.fail)
    assert len(samples) == len(lab.plan.steps)
    return [sample.outcome for sample, _ in samples]


def test_a_power_cut_at_any_moment_loses_no_result(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = [0, 0, 0]
    over: set[int] = set()
    for number in range(LIMIT):
        loader = number % 3
        if loader in over:
            continue
        with machine_with_loader(number, tmp_path, monkeypatch) as machine:
            lab.bundle(machine.home)
            machine.called("sync")
            machine.kill_after(6 * number, signal.SIGKILL)
            machine.runner("start", "--no-watchdog", "--pause", "0")
            if not machine.was_killed():
                over.add(loader)
                continue
            cuts[loader] += 1
            machine.cut_power()
            machine.runner("resume")
            assert not machine.was_killed()
            assert machine.left() == []
            # A cut just before the test kernel begins cannot be told from one that hangs, which is tried again.
            assert set(outcomes(lab, machine, tmp_path / f"{number}/result")) == {"ok"}
    assert over == {0, 1, 2}
    assert min(cuts) > 3

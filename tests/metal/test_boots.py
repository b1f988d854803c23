# SPDX-License-Identifier: GPL-2.0-only
"""Which kernel a boot has, how often it is tried, and what is on its disks."""

import hashlib
import re
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from foliolab.metal.answers import result_samples
from foliolab.metal.machine import HOME
from tests.metal.lab import BOOTS, Lab
from tests.metal.pretended import PATIENCE_SECONDS, Pretended
from tests.metal.stubs import STUBS
from tests.processes import wait_until

WRITES = f"sha256sum {HOME}/run/disk0 >>/state/disks\necho written >{HOME}/run/disk0\n"
"""What a test kernel does that writes to its disk, and what it found there."""


@pytest.fixture(params=["kexec", "grub", "systemd-boot"])
def loader(request: pytest.FixtureRequest, pretence: Pretended) -> Pretended:
    """A machine where one of them starts kernels."""
    if request.param == "grub":
        pretence.start_by_grub()
    if request.param == "systemd-boot":
        pretence.start_by_systemd_boot()
    return pretence


def boots_begun(machine: Pretended) -> list[str]:
    """The boots that were begun, from the journal."""
    return re.findall(r" boot ([\w-]+): ", (machine.run / "journal").read_text())


def test_a_kernel_that_was_never_started_is_tried_again(lab: Lab, loader: Pretended) -> None:
    """Instead, systemctl kexec may restart the machine, and the boot loader may not know the entry."""
    loader.fall_back(1)
    assert [sample.outcome for sample in lab.measure()] == ["ok"] * len(lab.plan.steps)
    assert loader.left() == []
    begun = boots_begun(loader)
    assert (len(begun), len(set(begun))) == (BOOTS + 1, BOOTS)


def test_a_kernel_that_is_silent_twice_is_a_result(lab: Lab, loader: Pretended) -> None:
    loader.fall_back(2)
    samples = lab.measure()
    assert sorted(sample.outcome for sample in samples) == ["hang"] * 3 + ["ok"] * (len(lab.plan.steps) - 3)
    assert loader.left() == []
    begun = boots_begun(loader)
    assert begun == [begun[0], begun[0], *begun[2:]]
    assert len(begun) == BOOTS + 1


def names_of_boots(lab: Lab, machine: Pretended) -> set[str]:
    """The names of the boots of a run, as samples have them, which are all ok."""
    archive = machine.place / "result.tar.gz"
    archive.write_bytes(machine.runner("result"))
    with TemporaryDirectory(dir=machine.place) as place:
        samples = [sample for sample, _ in result_samples(archive, Path(place), pytest.fail)]
    assert [sample.outcome for sample in samples] == ["ok"] * len(lab.plan.steps)
    return {sample.boot for sample in samples}


def test_a_power_cut_while_a_boot_is_to_be_tried_again_is_no_second_silence(lab: Lab, pretence: Pretended) -> None:
    lab.bundle(pretence.home)
    pretence.called("sync")
    pretence.fall_back(1)
    cut = "case $1 in */again) [ -e /state/cut ] || { : >/state/cut; kill -s KILL 0; } ;; esac\n"
    pretence.stub("sync", STUBS["sync"] + cut)
    pretence.runner("start", "--no-watchdog", "--pause", "0")
    assert wait_until(lambda: pretence.has("state/cut"), PATIENCE_SECONDS)
    pretence.cut_power()
    assert wait_until(lambda: pretence.ended, PATIENCE_SECONDS)
    assert pretence.left() == []
    assert len(names_of_boots(lab, pretence)) == BOOTS


def test_a_bundle_that_is_run_twice_has_other_boots(lab: Lab, pretence: Pretended) -> None:
    lab.bundle(pretence.home)
    shutil.copytree(pretence.run, pretence.home / "copy")
    pretence.journal_of_run()
    first = names_of_boots(lab, pretence)
    shutil.rmtree(pretence.run)
    (pretence.home / "copy").rename(pretence.run)
    pretence.journal_of_run()
    assert len(first | names_of_boots(lab, pretence)) == 2 * BOOTS


def test_a_kernel_that_is_damaged_is_not_started(lab: Lab, loader: Pretended) -> None:
    lab.bundle(loader.home)
    name = hashlib.sha256((lab.place / "bzImage").read_bytes()).hexdigest()
    damaged = bytearray((loader.home / "files" / name).read_bytes())
    damaged[100] ^= 1
    (loader.home / "files" / name).unlink()
    (loader.home / "files" / name).write_bytes(damaged)
    assert loader.journal_of_run().endswith(f"end: the kernel's file is damaged: {HOME}/files/{name}\n")
    assert loader.left() == []
    assert boots_begun(loader) == []
    assert not loader.has("state/boots")


def disks_found(machine: Pretended) -> list[str]:
    """The hash of the disk that each boot found."""
    return [line.split()[0] for line in (machine.root / "state/disks").read_text().splitlines()]


def test_each_boot_that_may_write_finds_disks_as_they_were_made(lab: Lab, loader: Pretended) -> None:
    loader.write("state/writes", WRITES)
    replace(lab, parameters="writable = true\n").bundle(loader.home)
    assert loader.journal_of_run().endswith("end: all is done\n")
    assert loader.left() == []
    assert disks_found(loader) == [hashlib.sha256((lab.place / "disk.img").read_bytes()).hexdigest()] * BOOTS


def test_disks_to_which_nothing_writes_are_made_once(lab: Lab, pretence: Pretended) -> None:
    lab.bundle(pretence.home)
    assert pretence.journal_of_run().count(" disk ") == 1


def test_disks_are_made_anew_after_a_boot_of_which_nothing_is_known(lab: Lab, pretence: Pretended) -> None:
    """The machine was going down when something started the runner once more."""
    pretence.write("state/writes", WRITES)
    replace(lab, parameters="writable = true\n").bundle(pretence.home)
    forget = f"[ -e /state/forgot ] || {{ : >/state/forgot; rm {HOME}/run/boots/*/started; }}\n"
    reboot = (pretence.root / "stubs/reboot").read_text()
    pretence.stub("reboot", reboot.replace("sync\n", f"sync\n{forget}", 1))
    assert pretence.journal_of_run().endswith("end: all is done\n")
    found = disks_found(pretence)
    assert (len(found), len(set(found))) == (BOOTS + 1, 1)

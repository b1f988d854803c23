# SPDX-License-Identifier: GPL-2.0-only
"""The spare device on a pretended machine: which disk it is, and what is refused as one."""

import json
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from foliolab.metal.answers import facts_of
from foliolab.metal.machine import HOME, RemoteMachine
from tests.metal.lab import Lab
from tests.metal.pretended import PATIENCE_SECONDS, Pretended
from tests.processes import wait_until

IDENTITY = "8-S1"


@pytest.fixture
def spare(lab: Lab, pretence: Pretended) -> Pretended:
    """A machine with a run under way, whose data is on a spare device, /dev/vdb at its start."""
    lab.bundle(pretence.home)
    (pretence.run / "options").write_text(
        f"spare='/dev/vdb' identity='{IDENTITY}' watchdog=no lease=0 pause=0\n",
    )
    for name in ("asked", "journal"):
        (pretence.run / name).touch()
    pretence.stub("sleep", '[ "$1" -lt 60 ] || exec /usr/bin/sleep "$1"\n')
    return pretence


def disks(machine: Pretended, **serials: str) -> None:
    """Replace the machine's disks by these. Each has its own content."""
    shutil.rmtree(machine.root / "sys/block")
    for name, serial in serials.items():
        machine.write(f"sys/block/{name}/size", "8\n")
        machine.write(f"sys/block/{name}/device/serial", f"{serial}  \n")
        machine.write(f"dev/{name}", f"on {name}")


def test_a_spare_device_is_found_by_its_number(spare: Pretended) -> None:
    disks(spare, vdb="S2", vdc="S1")
    spare.runner("resume")
    assert wait_until(lambda: spare.ended, PATIENCE_SECONDS)
    assert "end: all is done" in (spare.run / "journal").read_text()
    assert (spare.root / "dev/vdb").read_text() == "on vdb"
    assert " disk /dev/vdc of " in (spare.run / "journal").read_text()
    assert set((spare.root / "dev/vdc").read_bytes()) == {0}
    boot, *_ = (spare.run / "boots").iterdir()
    requests = [json.loads(line) for line in (boot / "requests").read_text().splitlines()]
    assert requests[0]["argv"] == ["sh", f"{HOME}/runner", "name-spare", IDENTITY]
    assert {word for each in requests for word in each["argv"] if word.startswith("/dev/")} == {
        "/dev/foliolab-spare",
        "/dev/foliolab-spare-block/queue/read_ahead_kb",
    }
    # Another kernel calls it something else again.
    disks(spare, vda="S1", vdb="S2")
    assert spare.called(*requests[0]["argv"]).returncode == 0
    assert {name: (spare.root / "dev" / name).readlink() for name in ("foliolab-spare", "foliolab-spare-block")} == {
        "foliolab-spare": Path("/dev/vda"),
        "foliolab-spare-block": Path("/sys/block/vda"),
    }


@pytest.mark.parametrize("serials", [{"vdb": "S2"}, {"vdb": "S1", "vdc": "S1"}, {"vdb": ""}])
def test_another_disk_is_never_taken_for_the_spare_device(spare: Pretended, serials: dict[str, str]) -> None:
    disks(spare, **serials)
    done = spare.called("sh", f"{HOME}/runner", "name-spare", IDENTITY)
    assert done.returncode != 0
    assert done.stderr.decode().splitlines() == [
        f"This kernel has no disk, or several, with the size and serial number of the spare device ({IDENTITY})."
    ]
    assert not spare.has("dev/foliolab-spare")
    (spare.run / "journal").write_text("earlier disk /dev/vdb of 4096 bytes\n")
    spare.runner("resume")
    assert wait_until(lambda: spare.ended, PATIENCE_SECONDS)
    said = (spare.run / "journal").read_text()
    assert f"left: what was written to the spare device ({IDENTITY})" in said
    assert f"end: the spare device ({IDENTITY}) is gone" in said
    assert {name: (spare.root / "dev" / name).read_text() for name in serials} == {
        name: f"on {name}" for name in serials
    }


MIB = 1 << 20


@pytest.fixture
def ready(lab: Lab, pretence: Pretended) -> Pretended:
    """A machine with a bundle that was not begun, and an empty disk of 2 MiB, /dev/vdb. Disks are files there."""
    lab.bundle(pretence.home)
    runner = pretence.home / "runner"
    runner.write_text(runner.read_text().replace('[ -b "$spare" ]', '[ -f "$spare" ]'))
    disks(pretence, vdb="S1")
    (pretence.root / "dev/vdb").write_bytes(bytes(2 * MIB))
    return pretence


def started(machine: Pretended, spare: str = "/dev/vdb") -> "subprocess.CompletedProcess[bytes]":
    options = ("--no-watchdog", "--pause", "0", "--spare", spare)
    checked = machine.called("sh", f"{HOME}/runner", "check", *options)
    begun = machine.called("sh", f"{HOME}/runner", "start", *options)
    assert (begun.returncode, begun.stderr) == (checked.returncode, checked.stderr)
    return begun


def test_a_spare_device_by_another_name_is_used_and_empty_again(ready: Pretended) -> None:
    link = ready.root / "dev/disk/by-id/nvme-S1"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../vdb")
    assert started(ready, "/dev/disk/by-id/nvme-S1").returncode == 0
    # Samples on it and in a file are of two hosts, which lab and runner call alike.
    there = RemoteMachine("bench1", ("bench1",), ("--spare", "/dev/disk/by-id/nvme-S1"))
    name = f"{platform.node()} with /dev/vdb"
    assert (facts_of((ready.run / "facts").read_text())["name"], there.name) == (name, name)
    assert RemoteMachine("bench1", ("bench1",)).name == platform.node()
    assert wait_until(lambda: ready.ended, PATIENCE_SECONDS)
    journal = (ready.run / "journal").read_text()
    assert " disk /dev/vdb of " in journal
    assert journal.endswith("end: all is done\n")
    assert (ready.root / "dev/vdb").read_bytes()[:MIB] == bytes(MIB)
    assert ready.left() == []


@pytest.mark.parametrize(
    ("changed", "content", "sentence"),
    [
        ("sys/block/vdb/device/serial", "\n", "/dev/vdb has no number of its own, by which it could be known again."),
        ("state/mounted", "/mnt\n", "/dev/vdb is mounted."),
        ("state/partition", "", "/dev/vdb has partitions, or something is made of it."),
        ("stubs/blkid", "#!/bin/sh\necho ext4\n", "/dev/vdb holds ext4; a spare device is empty."),
        ("dev/vdb", "\0" * (MIB - 1) + "x", "The first MiB of /dev/vdb is not empty, or cannot be read."),
        ("dev/vdb", "\0" * 4096, "The first MiB of /dev/vdb is not empty, or cannot be read."),
        ("state/size", "4095", "/dev/vdb is too small."),
    ],
)
def test_disks_that_are_no_spare_device(ready: Pretended, changed: str, content: str, sentence: str) -> None:
    ready.write(changed, content)
    refused = started(ready)
    assert (refused.returncode, refused.stderr.decode()) == (3, f"{sentence}\n")
    assert ready.left() == []


@pytest.mark.parametrize("name", ["/dev/vdc", "/dev/disk/by-id/nvme-S1"])
def test_a_spare_device_that_is_not_there(ready: Pretended, name: str) -> None:
    refused = started(ready, name)
    assert (refused.returncode, refused.stderr.decode()) == (3, f"{name} is no block device.\n")


def test_room_for_the_data_is_not_wanted_beside_a_spare_device(ready: Pretended) -> None:
    plan = (ready.run / "plan").read_text()
    ready.write(f"{HOME[1:]}/run/plan", plan.replace(" 4096\n", f" {50 << 30}\n"))
    ready.write("state/size", str(50 << 30))
    ready.write("state/free", str(2 << 20))  # KiB
    refused = ready.called("sh", f"{HOME}/runner", "check", "--no-watchdog")
    assert refused.stderr.decode() == f"There are 2048 MiB left in {HOME}, and 52224 are wanted.\n"
    ready.runner("check", "--no-watchdog", "--spare", "/dev/vdb")


@pytest.mark.parametrize("journal", ["", "earlier disk /dev/vdb of 4096 bytes\n"], ids=["new", "resumed"])
@pytest.mark.parametrize(("name", "content"), [("mounted", "/mnt\n"), ("partition", "")])
def test_a_spare_device_that_is_in_use_by_now_is_not_written(
    spare: Pretended, name: str, content: str, journal: str
) -> None:
    (spare.run / "journal").write_text(journal)
    disks(spare, vdb="S1")
    spare.write(f"state/{name}", content)
    spare.runner("resume")
    assert wait_until(lambda: spare.ended, PATIENCE_SECONDS)
    said = (spare.run / "journal").read_text()
    assert "end: /dev/vdb " in said
    assert (f"left: what was written to the spare device ({IDENTITY})" in said) is bool(journal)
    assert (spare.root / "dev/vdb").read_text() == "on vdb"
    assert spare.left() == []


def test_a_boot_that_has_ended_is_kept_when_the_spare_device_is_gone(spare: Pretended) -> None:
    disks(spare, vdb="S1")
    boot, *_ = sorted((spare.run / "boots").iterdir())
    spare.stub(
        "date", f'[ ! -e {HOME}/run/boots/{boot.name}/started ] || rm -rf /sys/block/vdb\nexec /usr/bin/date "$@"\n'
    )
    spare.runner("resume")
    assert wait_until(lambda: spare.ended, PATIENCE_SECONDS)
    assert f"end: the spare device ({IDENTITY}) is gone" in (spare.run / "journal").read_text()
    assert (boot / "outcome").read_text() == "end\n"


def test_a_disk_has_the_same_identity_under_each_kernel(spare: Pretended) -> None:
    # Linux 6.12 has no device/serial for SCSI.
    disks(spare, sda="")
    (spare.root / "sys/block/sda/device/serial").unlink()
    spare.write("sys/block/sda/device/wwid", "naa.5000\n")
    name_spare = ("sh", f"{HOME}/runner", "name-spare", "8-naa5000")
    assert spare.called(*name_spare).returncode == 0
    spare.write("sys/block/sda/device/serial", "S1\n")
    assert spare.called(*name_spare).returncode == 0


def test_a_root_that_no_kernel_finds_is_refused(ready: Pretended) -> None:
    ready.stub("lsblk", "case $* in *PARTUUID*) ;; *TYPE*) echo part ;; esac\n")
    refused = ready.called("sh", f"{HOME}/runner", "check", "--no-watchdog")
    assert refused.returncode == 3
    assert "no test kernel would find it" in refused.stderr.decode()
    ready.stub("uname", '[ "$1" != -r ] || exec echo 6.1\nexec /usr/bin/uname "$@"\n')
    ready.write("boot/initrd.img-6.1", "")
    ready.runner("check", "--no-watchdog")


@pytest.mark.parametrize("option", ["--lease", "--pause"])
@pytest.mark.parametrize("value", [["4h"], [""], ["-1"], []])
def test_seconds_that_are_no_number_are_refused(ready: Pretended, option: str, value: list[str]) -> None:
    refused = ready.called("sh", f"{HOME}/runner", "check", "--no-watchdog", option, *value)
    assert refused.returncode == 3
    assert refused.stderr.decode() == f"{option} takes a number of seconds.\n"

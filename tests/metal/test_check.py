# SPDX-License-Identifier: GPL-2.0-only
"""What a machine has to be: the runner says in a sentence what it lacks."""

import subprocess
from collections.abc import Mapping, Sequence

import pytest

from foliolab.arch import NATIVE
from foliolab.metal.machine import HOME
from tests.metal.lab import Lab
from tests.metal.pretended import Pretended

RUN = HOME.lstrip("/") + "/run"
GRUB = "GRUB cannot start another kernel once"
NO_KEXEC = f"This machine's kernel does not start others, and {GRUB}"
ELSEWHERE = """\
case $* in
*UUID*) echo 12-34 ;;
*SOURCE*-T*) echo {source} ;;
*SOURCE*) echo /dev/vda1 ;;
*-T*) echo {kind} ;;
*) echo ext4 ;;
esac
"""
"""What findmnt says where /boot is a file system of its own."""


@pytest.fixture
def ready(lab: Lab, pretence: Pretended) -> Pretended:
    """A machine with a bundle that was not begun."""
    lab.bundle(pretence.home)
    return pretence


def change(machine: Pretended, changes: Mapping[str, str | None]) -> None:
    """Give the machine files, programs where they are stubs, or take them away."""
    for name, text in changes.items():
        if text is None:
            (machine.root / name).rmdir()
        elif name.startswith("stubs/"):
            machine.stub(name.removeprefix("stubs/"), text)
        else:
            machine.write(name, text)


def checked(
    machine: Pretended, *options: str, lacking: Sequence[str] = (), watchdog: bool = False
) -> "subprocess.CompletedProcess[bytes]":
    ignored = () if watchdog else ("--no-watchdog",)
    return machine.called_without(lacking, "sh", f"{HOME}/runner", "check", *ignored, *options)


def refused(machine: Pretended, *options: str, lacking: Sequence[str] = (), watchdog: bool = False) -> str:
    """The sentence with which it is refused; nothing was done then."""
    done = checked(machine, *options, lacking=lacking, watchdog=watchdog)
    assert done.returncode == 3, done.stderr.decode()
    assert done.stdout == b""
    assert machine.left() == []
    return done.stderr.decode()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"stubs/id": "echo 1000\n"}, "Only root can start another kernel."),
        ({"stubs/uname": "echo s390x\n"}, f"This is a s390x machine; the kernels are for {NATIVE.name}."),
        (
            {"stubs/findmnt": "case $* in *SOURCE*) echo /dev/vda1 ;; *) echo btrfs ;; esac\n"},
            "The root file system is neither ext4 nor XFS: no test kernel can mount it.",
        ),
        ({"stubs/nproc": "echo 1\n"}, "This machine has less than the 2 processors that are wanted."),
        ({"run/systemd/system": None}, "This machine was not started by systemd."),
        ({"proc/sys/kernel/kexec_load_disabled": "1\n"}, f"{NO_KEXEC}: it has no menu in /boot."),
        (
            {"sys/kernel/security/lockdown": "none [integrity] confidentiality\n"},
            "This machine's kernel is locked down, and starts none that is not signed.",
        ),
        (
            {"sys/kernel/security/lockdown": "none integrity [confidentiality]\n"},
            "This machine's kernel is locked down, and starts none that is not signed.",
        ),
        (
            {"stubs/who": "echo alice pts/0\n"},
            "Somebody is logged in; --though-in-use ends their sessions.",
        ),
        (
            {"stubs/stat": '[ "$3" = / ] && echo 1 || echo 2\n'},
            f"{HOME} is not on the root file system.",
        ),
        (
            {f"{RUN}/ended": ""},
            f"This bundle has been run. To run it once more, remove {HOME}/run and unpack it again.",
        ),
        (
            {f"{RUN}/journal": ""},
            f"There is another run on this machine: see {HOME}/run/journal."
            " 'runner resume' goes on with it if it was killed.",
        ),
        ({"state/free": f"{1 << 20}\n"}, f"There are 1024 MiB left in {HOME}, and 1024 are wanted."),
        (
            {"proc/iomem": "00100000-0fffffff : System RAM\n10000000-ffffffff : Reserved\n"},
            "This machine has less than the 256 MiB of memory that are wanted.",
        ),
    ],
)
def test_what_a_machine_lacks(ready: Pretended, changes: Mapping[str, str | None], sentence: str) -> None:
    change(ready, changes)
    assert refused(ready) == f"{sentence}\n"


def test_another_units_file_is_another_run(ready: Pretended) -> None:
    unit = "/etc/systemd/system/foliolab-metal.service"
    ready.write(unit[1:], "")
    assert checked(ready).stderr.decode() == f"There is another run on this machine: see {unit}.\n"


@pytest.mark.parametrize("program", ["cmp", "systemctl", "losetup", "lsblk", "blkid", "findmnt", "gzip", "tar"])
def test_programs_that_a_machine_lacks(ready: Pretended, program: str) -> None:
    assert refused(ready, lacking=[program]) == f"This machine lacks {program}.\n"


@pytest.mark.parametrize(
    ("lacking", "changes", "options", "why"),
    [
        (["kexec"], {}, [], "This machine lacks kexec, and"),
        ([], {}, ["--no-kexec"], "There is --no-kexec, and"),
        ([], {"proc/sys/kernel/kexec_load_disabled": "1\n"}, [], "This machine's kernel does not start others, and"),
    ],
)
def test_a_machine_without_kexec_needs_grub(
    ready: Pretended, lacking: list[str], changes: Mapping[str, str], options: list[str], why: str
) -> None:
    change(ready, changes)
    assert refused(ready, *options, lacking=lacking) == f"{why} {GRUB}: it has no menu in /boot.\n"
    ready.start_by_grub()
    assert checked(ready, *options, lacking=lacking).returncode == 0


@pytest.mark.parametrize(
    ("changes", "lacking", "why"),
    [
        ({"boot/grub/custom.cfg": ""}, [], "there is /boot/grub/custom.cfg"),
        ({"boot/grub/grub.cfg": "source custom.cfg\n"}, [], "its menu takes no other entry"),
        ({"boot/grub/grub.cfg": "if [ next_entry ]\n"}, [], "its menu takes no other entry"),
        (
            {"stubs/findmnt": ELSEWHERE.format(source="/dev/vda2", kind="btrfs")},
            [],
            "it cannot write to the file system of /boot/grub",
        ),
        (
            {
                "stubs/findmnt": ELSEWHERE.format(source="/dev/md0", kind="ext4"),
                "stubs/lsblk": "case $* in *PARTUUID*) echo 1 ;; *TYPE*md0) echo raid1 ;; *TYPE*) echo part ;; esac\n",
            },
            [],
            "/boot/grub is on no plain partition",
        ),
        *(
            ({}, [f"grub-{name}", f"grub2-{name}"], f"there is no grub-{name}")
            for name in ("reboot", "editenv", "mkrelpath")
        ),
    ],
)
def test_a_grub_that_cannot_start_a_kernel_once(
    ready: Pretended, changes: Mapping[str, str], lacking: list[str], why: str
) -> None:
    ready.start_by_grub()
    change(ready, changes)
    done = checked(ready, lacking=lacking)
    assert (done.returncode, done.stderr.decode()) == (3, f"{NO_KEXEC}: {why}.\n")


@pytest.mark.parametrize(
    ("changes", "lacking", "why"),
    [
        ({"efi/loader/entries/foliolab-metal.conf": ""}, [], "there is /efi/loader/entries/foliolab-metal.conf"),
        ({"stubs/bootctl": "echo /boot\n"}, [], "there is no /boot/loader/entries"),
        ({"stubs/bootctl": "exit 1\n"}, [], "its partition is not mounted"),
        ({}, ["bootctl"], "there is no bootctl"),
        (
            {"sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": "0000\1"},
            [],
            "Secure Boot is on",
        ),
        (
            {"stubs/df": "case $* in */efi) echo Avail; echo 3 ;; *) echo Avail; cat /state/free ;; esac\n"},
            [],
            "/efi has 3 KiB left, and 4 are wanted",
        ),
    ],
)
def test_a_systemd_boot_that_cannot_start_a_kernel_once(
    ready: Pretended, changes: Mapping[str, str], lacking: list[str], why: str
) -> None:
    ready.start_by_systemd_boot()
    assert checked(ready).returncode == 0
    change(ready, changes)
    done = checked(ready, lacking=lacking)
    assert (done.returncode, done.stderr.decode()) == (3, f"{NO_KEXEC.replace('GRUB', 'systemd-boot')}: {why}.\n")


@pytest.mark.parametrize("kind", ["ext2", "ext3", "ext4", "xfs", "vfat"])
def test_file_systems_to_which_grub_writes(ready: Pretended, kind: str) -> None:
    ready.start_by_grub()
    change(ready, {"stubs/findmnt": ELSEWHERE.format(source="/dev/vda2", kind=kind)})
    assert checked(ready).returncode == 0


def test_a_watchdog_is_wanted(ready: Pretended) -> None:
    assert refused(ready, watchdog=True) == (
        "There is no /dev/watchdog: a kernel that hangs would stay. Load its driver, or take --no-watchdog.\n"
    )


def test_a_path_that_is_no_word_of_a_command_line(lab: Lab, pretence: Pretended) -> None:
    for number, odd in enumerate(("my lab", "l'ab", 'l"ab', "lab=1", "läb")):
        lab.bundle(pretence.root / f"tmp/{number}" / odd)
        done = pretence.called("sh", f"/tmp/{number}/{odd}/runner", "check", "--no-watchdog")
        sentence = f"/tmp/{number}/{odd} cannot be a word of a kernel's command line.\n"
        assert (done.returncode, done.stderr.decode()) == (3, sentence)


def test_what_is_no_hindrance(ready: Pretended) -> None:
    for changes, options in (
        ({}, []),
        ({"sys/kernel/security/lockdown": "[none] integrity confidentiality\n"}, []),
        ({"stubs/who": "echo alice pts/0\n"}, ["--though-in-use"]),
        ({"stubs/nproc": "echo 2\n"}, ["--though-in-use"]),
    ):
        change(ready, changes)
        done = checked(ready, *options)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

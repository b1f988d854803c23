# SPDX-License-Identifier: GPL-2.0-only
"""Where kexec cannot work, systemd-boot starts each kernel for one boot, and its entries are as before."""

import pytest

from foliolab.metal.machine import HOME
from tests.metal.lab import BOOTS, Lab
from tests.metal.pretended import PATIENCE_SECONDS, Pretended
from tests.metal.stubs import FULL, STUBS
from tests.processes import wait_until

KEEP = '[ -z "${2:-}" ] || cp -r /efi /state/\n'
"""What lets a test see the boot partition as it was when a kernel was to start."""


@pytest.fixture
def ready(lab: Lab, pretence: Pretended) -> Pretended:
    """A machine whose kernel starts no other, with a bundle that was not begun."""
    pretence.start_by_systemd_boot()
    pretence.write("efi/loader/entries/debian.conf", "linux /debian\n")
    lab.bundle(pretence.home)
    return pretence


def put_back(machine: Pretended) -> None:
    """Wait until the run ends, with nothing left of it but what was there."""
    journal = machine.journal_at_end()
    assert [path.name for path in machine.left()] == ["debian.conf"], journal


def test_systemd_boot_starts_kernels_where_kexec_cannot(lab: Lab, pretence: Pretended) -> None:
    pretence.start_by_systemd_boot()
    assert [sample.outcome for sample in lab.measure()] == ["ok"] * len(lab.plan.steps)
    pretence.put_back()
    assert pretence.started == BOOTS


@pytest.mark.parametrize("initramfs", [False, True])
def test_what_systemd_boot_is_told(ready: Pretended, initramfs: bool) -> None:
    ready.stub("bootctl", KEEP + STUBS["bootctl"])
    if initramfs:
        ready.need_initramfs()
    assert ready.journal_of_run().endswith("end: all is done\n")
    put_back(ready)
    kept = ready.root / "state/efi"
    title, linux, *initrd, options = (kept / "loader/entries/foliolab-metal.conf").read_text().splitlines()
    assert (title, linux) == ("title Measurement", "linux /foliolab-metal.kernel")
    assert initrd == ["initrd /foliolab-metal.initrd"] * initramfs
    assert (kept / "foliolab-metal.initrd").exists() == initramfs
    *_, boot = sorted((ready.run / "boots").iterdir())
    journal = [line for line in (ready.run / "journal").read_text().splitlines() if f" boot {boot.name}: " in line]
    assert options.split() == ["options", *journal[-1].split(": ", 1)[1].split()]
    assert f"foliolab_job={HOME}/run/boots/{boot.name}" in options.split()


@pytest.mark.parametrize(
    ("program", "text", "why"),
    [
        (
            "bootctl",
            f"[ \"$1\" != set-oneshot ] || {{ echo 'no variables' >&2; exit 1; }}\n{STUBS['bootctl']}",
            "no variables",
        ),
        (
            "cp",
            FULL,
            "No space left",
        ),
    ],
)
def test_a_systemd_boot_that_fails_ends_the_run(ready: Pretended, program: str, text: str, why: str) -> None:
    ready.stub(program, text)
    assert f"end: systemd-boot cannot start the kernel once: {why}\n" in ready.journal_of_run()
    put_back(ready)
    assert ready.started == 0


def test_an_entry_that_would_be_the_default_is_taken_away(ready: Pretended) -> None:
    """systemd-boot starts its first entry where nobody has chosen one, and the machine would never come back."""
    default = "Default Boot Loader Entry:\n           id: foliolab-metal.conf\n"
    ready.stub("bootctl", f"[ \"$1\" != status ] || {{ echo '{default}'; exit; }}\n{STUBS['bootctl']}")
    why = "it would start it at each boot"
    assert f"end: systemd-boot cannot start the kernel once: {why}\n" in ready.journal_of_run()
    put_back(ready)
    assert ready.started == 0


def test_a_boot_partition_that_has_gone_is_said(ready: Pretended) -> None:
    ready.stay_up(0)
    ready.stub("sleep", "[ ! -e /efi/loader/entries/foliolab-metal.conf ] || mv /efi /unmounted\n")
    assert "left: /efi/loader/entries/foliolab-metal.conf\n" in ready.journal_of_run()


def test_a_backslash_stays_one(ready: Pretended) -> None:
    ready.stub("bootctl", KEEP + STUBS["bootctl"])
    ready.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro a=b\\tc\n")
    ready.journal_of_run()
    assert " a=b\\tc " in (ready.root / "state/efi/loader/entries/foliolab-metal.conf").read_text()


def test_a_machine_that_stays_up_starts_its_own_kernel_next(ready: Pretended) -> None:
    ready.stay_up(0)
    ready.stub("sleep", "")
    assert "end: the machine does not go down\n" in ready.journal_of_run()
    put_back(ready)
    assert ready.called("reboot").returncode == 0
    assert ready.started == 0


def test_the_choice_of_somebody_else_stays(ready: Pretended) -> None:
    ready.stay_up(1)
    ready.stub("systemctl", f'[ "$1" != reboot ] || bootctl set-oneshot other.conf\n{STUBS["systemctl"]}')
    ready.runner("start", "--no-watchdog", "--pause", "0")
    assert wait_until(lambda: ready.ended, PATIENCE_SECONDS)
    assert (ready.root / "state/next").read_text() == "other.conf\n"
    assert ready.called("bootctl", "set-oneshot", "").returncode == 0
    put_back(ready)

# SPDX-License-Identifier: GPL-2.0-only
"""Where kexec cannot work, GRUB starts each kernel for one boot, and its menu is as before."""

import shutil

import pytest

from foliolab.metal.machine import HOME
from tests.metal.lab import BOOTS, Lab
from tests.metal.pretended import PATIENCE_SECONDS, Pretended
from tests.metal.stubs import FULL
from tests.processes import wait_until

MENU = "boot/grub/custom.cfg"
KEEP = 'cp /boot/grub/custom.cfg /state/menu; echo "$1" >/state/next\n'
"""A grub-reboot after which the menu can be read."""


@pytest.fixture
def ready(lab: Lab, pretence: Pretended) -> Pretended:
    """A machine whose kernel starts no other, with a bundle that was not begun."""
    pretence.start_by_grub()
    lab.bundle(pretence.home)
    return pretence


def test_grub_starts_kernels_where_kexec_cannot(lab: Lab, pretence: Pretended) -> None:
    pretence.start_by_grub()
    assert [sample.outcome for sample in lab.measure()] == ["ok"] * len(lab.plan.steps)
    assert pretence.left() == []
    assert pretence.started == BOOTS


def test_grub_is_used_where_kexec_is_not_wanted(ready: Pretended) -> None:
    ready.write("proc/sys/kernel/kexec_load_disabled", "0\n")
    ready.stub("kexec", ": >/state/called\n")
    assert ready.journal_of_run("--no-kexec").endswith("end: all is done\n")
    assert ready.started == BOOTS
    assert not ready.has("state/called")


def test_what_grub_is_told(ready: Pretended) -> None:
    ready.stub("grub-reboot", KEEP)
    ready.stub("grub-mkrelpath", 'echo "/@boot${1#/boot}"\n')
    assert ready.journal_of_run().endswith("end: all is done\n")
    condition, entry, search, linux, end = (ready.root / "state/menu").read_text().splitlines()
    # A kernel that cannot be loaded is followed by this machine's own.
    assert condition == 'if [ "${default}" = foliolab-metal ]; then set fallback=0; fi'
    assert (entry, end) == ("menuentry 'Measurement' --id foliolab-metal {", "}")
    assert search.split() == ["search", "--no-floppy", "--fs-uuid", "--set=root", "12-34"]
    command, image, *words = linux.split()
    assert (command, image) == ("linux", "'/@boot/grub/foliolab-metal.kernel'")
    assert all(word[0] == word[-1] == "'" for word in words)
    *_, boot = sorted((ready.run / "boots").iterdir())
    journal = [line for line in (ready.run / "journal").read_text().splitlines() if f" boot {boot.name}: " in line]
    assert [word.strip("'") for word in words] == journal[-1].split(": ", 1)[1].split()
    assert f"'foliolab_job={HOME}/run/boots/{boot.name}'" in words


def test_grub_loads_the_initramfs_that_finds_the_root(ready: Pretended) -> None:
    ready.stub("grub-reboot", KEEP)
    ready.need_initramfs()
    assert ready.journal_of_run().endswith("end: all is done\n")
    *_, linux, initrd, _ = (ready.root / "state/menu").read_text().splitlines()
    assert "'root=/dev/vda1'" in linux.split()
    assert initrd == "\tinitrd '/boot/initrd.img-6.1'"


@pytest.mark.skipif(
    any(shutil.which(f"grub-{name}", path="/usr/bin:/usr/sbin") for name in ("reboot", "editenv", "mkrelpath")),
    reason="the machine would have this one's GRUB",
)
def test_grub_is_called_grub2_on_some_distributions(ready: Pretended) -> None:
    for name in ("reboot", "editenv", "mkrelpath"):
        (ready.root / f"stubs/grub-{name}").rename(ready.root / f"stubs/grub2-{name}")
    (ready.root / "boot/grub").rename(ready.root / "boot/grub2")
    reboot = ready.root / "stubs/reboot"
    reboot.write_text(reboot.read_text().replace("/boot/grub/", "/boot/grub2/"))
    assert ready.journal_of_run().endswith("end: all is done\n")
    assert ready.started == BOOTS
    assert [path.name for path in (ready.root / "boot/grub2").iterdir()] == ["grub.cfg"]


@pytest.mark.parametrize(
    ("program", "text", "why"),
    [
        ("grub-reboot", "echo 'no grubenv' >&2; exit 1\n", "no grubenv"),
        ("grub-mkrelpath", "echo 'no path' >&2; exit 1\n", "no path"),
        (
            "cp",
            FULL,
            "No space left",
        ),
    ],
)
def test_a_grub_that_fails_ends_the_run(ready: Pretended, program: str, text: str, why: str) -> None:
    ready.stub(program, text)
    assert f"end: GRUB cannot start the kernel once: {why}\n" in ready.journal_of_run()
    assert ready.left() == []
    assert ready.started == 0


@pytest.mark.parametrize("word", ['dyndbg="file a.c"', "a='b'", "a\\b"])
def test_words_that_grub_would_change_end_the_run(ready: Pretended, word: str) -> None:
    ready.write("proc/cmdline", f"BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro {word}\n")
    why = "it would change the quotes and backslashes of the command line"
    assert f"end: GRUB cannot start the kernel once: {why}\n" in ready.journal_of_run()
    assert ready.left() == []
    assert ready.started == 0


@pytest.mark.parametrize(
    ("status", "reason"), [(1, "the machine cannot be restarted"), (0, "the machine does not go down")]
)
def test_a_machine_that_stays_up_starts_its_own_kernel_next(ready: Pretended, status: int, reason: str) -> None:
    ready.stay_up(status)
    ready.stub("sleep", "")
    assert f"end: {reason}\n" in ready.journal_of_run()
    assert ready.left() == []
    assert ready.called("reboot").returncode == 0
    assert ready.started == 0


def test_stop_takes_the_entry_out_of_the_menu(ready: Pretended) -> None:
    ready.stay_up(0)
    ready.runner("start", "--no-watchdog", "--pause", "0")
    assert wait_until(lambda: ready.has("state/next"), PATIENCE_SECONDS)
    ready.runner("stop")
    assert "end: told to stop" in ready.put_back()


def test_the_choice_of_somebody_else_stays(ready: Pretended) -> None:
    ready.stay_up(1)
    ready.stub("grub-reboot", "echo other >/state/next\n")
    ready.runner("start", "--no-watchdog", "--pause", "0")
    assert wait_until(lambda: ready.ended, PATIENCE_SECONDS)
    assert (ready.root / "state/next").read_text() == "other\n"
    (ready.root / "state/next").unlink()
    ready.put_back()


def test_what_grub_cannot_forget_is_said(ready: Pretended) -> None:
    ready.stay_up(1)
    ready.stub("grub-editenv", "case $2 in list) echo next_entry=foliolab-metal ;; *) exit 1 ;; esac\n")
    assert " left: GRUB's next entry\n" in ready.journal_of_run()
    # All else is put back.
    assert [path.name for path in ready.left()] == ["next"]

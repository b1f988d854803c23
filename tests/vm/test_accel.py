# SPDX-License-Identifier: GPL-2.0-only
import ast
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import ARCHITECTURES, X86_64, Architecture
from foliolab.errors import UsageError
from foliolab.files import REPOSITORY
from foliolab.vm import accel
from foliolab.vm.accel import COUNTING, ICOUNT, KVM, TCG, Wanted, boot_tiny_guest, choose, kvm_fails
from foliolab.vm.guest import GuestConfig, qemu_command


def test_kvm_is_tried_once_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    reason = kvm_fails(X86_64)
    monkeypatch.setattr(accel, "boot_tiny_guest", pytest.fail)
    assert kvm_fails(X86_64) == reason


def test_no_kvm_for_a_foreign_architecture() -> None:
    foreign = replace(X86_64, name="vax", machine="vax")
    assert kvm_fails(foreign) == "this machine is no vax machine"
    assert choose(foreign, "auto").backend == "qemu-tcg"
    with pytest.raises(UsageError, match="KVM does not work here: this machine is no vax machine"):
        choose(foreign, "kvm")


def test_counting_instructions_takes_one_cpu() -> None:
    accelerator = choose(X86_64, "icount")
    assert accelerator.backend == "qemu-icount"
    config = GuestConfig(X86_64, Path("/kernel"), Path("/initramfs"), accelerator, cpus=2)
    with pytest.raises(UsageError, match="qemu-icount runs guests of one CPU only, not of 2"):
        qemu_command(config)


@pytest.mark.parametrize(
    ("wanted", "backend", "real_time", "counts"),
    [("tcg", "qemu-tcg", False, False), (COUNTING, "qemu-icount", False, True), ("kvm", "qemu-kvm", True, False)],
)
def test_what_each_can(
    wanted: Wanted, backend: str, real_time: bool, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accel, "kvm_fails", lambda arch: "")
    chosen = choose(X86_64, wanted)
    assert (chosen.backend, chosen.real_time, chosen.counts_instructions) == (backend, real_time, counts)


def test_no_other_module_spells_their_names() -> None:
    names = {KVM, TCG, ICOUNT}
    spelled = {
        (file.name, node.lineno)
        for file in (REPOSITORY / "foliolab").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert {name for name, line in spelled} == {"accel.py"}


@pytest.mark.parametrize("arch", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_what_is_booted_to_try_kvm_does_run(arch: Architecture) -> None:
    assert boot_tiny_guest(arch, choose(arch, "tcg")) == ""


def test_an_accelerator_that_fails_says_why() -> None:
    broken = replace(choose(X86_64, "tcg"), options=("-machine", "none-such"))
    assert boot_tiny_guest(X86_64, broken).startswith("QEMU fails: ")


def test_an_accelerator_that_runs_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accel, "_TINY_GUEST_SECONDS", 0.5)
    stopped = choose(X86_64, "tcg")
    stopped = replace(stopped, options=(*stopped.options, "-S"), patience=2)
    assert boot_tiny_guest(X86_64, stopped) == "a guest of a few instructions did not end within 1 s"

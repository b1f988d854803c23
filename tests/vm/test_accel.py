# SPDX-License-Identifier: GPL-2.0-only
import time
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import X86_64
from foliolab.errors import UsageError
from foliolab.vm.accel import choose, probe_kvm
from foliolab.vm.guest import GuestConfig, qemu_command


def test_kvm_is_tried_once_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    verdict = probe_kvm(X86_64)
    start = time.monotonic()
    assert probe_kvm(X86_64) == verdict
    assert time.monotonic() - start < 1
    assert verdict.reason


def test_no_kvm_for_a_foreign_architecture() -> None:
    foreign = replace(X86_64, name="vax", machine="vax")
    assert probe_kvm(foreign).reason == "this machine is no vax machine"
    assert choose(foreign, "auto").backend == "qemu-tcg"
    with pytest.raises(UsageError, match="KVM does not work here: this machine is no vax machine"):
        choose(foreign, "kvm")


def test_counting_instructions_takes_one_cpu() -> None:
    accelerator = choose(X86_64, "icount")
    assert accelerator.backend == "qemu-icount"
    config = GuestConfig(X86_64, Path("/kernel"), Path("/initramfs"), accelerator, cpus=2)
    with pytest.raises(UsageError, match="qemu-icount runs guests of one CPU only, not of 2"):
        qemu_command(config)

# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.arch import X86_64
from foliolab.kernel.build import BuiltKernel
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.guest import GuestConfig
from foliolab.vm.image import guest_programs, initramfs


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    return guest_programs(X86_64, Reporter())


@pytest.fixture(scope="session")
def config(patched_kernel: BuiltKernel, programs: dict[str, Path]) -> GuestConfig:
    """A small guest without disks."""
    return GuestConfig(X86_64, patched_kernel.image, initramfs(programs), choose(X86_64), memory_mib=256, cpus=2)

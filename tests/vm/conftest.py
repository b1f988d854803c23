# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.accel import choose
from foliolab.vm.guest import GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from tests.guest.alone import Alone
from tests.machines import Machine


@pytest.fixture(scope="session")
def programs(machine: Machine) -> dict[str, Path]:
    return guest_programs(machine.arch)


@pytest.fixture(scope="session")
def config(machine: Machine, programs: dict[str, Path]) -> GuestConfig:
    """A small guest without disks."""
    return guest_config(machine.kernel(), programs)


@pytest.fixture(scope="session")
def native_config(patched_kernel: BuiltKernel) -> GuestConfig:
    """The same of this machine's own architecture, for what does not depend on it."""
    return guest_config(patched_kernel, guest_programs(NATIVE))


def guest_config(kernel: BuiltKernel, programs: dict[str, Path]) -> GuestConfig:
    image = initramfs(programs)
    return GuestConfig(kernel.arch, kernel.image, image, choose(kernel.arch), memory_mib=256, cpus=2)


@pytest.fixture
def alone(tmp_path: Path) -> Alone:
    return Alone(tmp_path)

# SPDX-License-Identifier: GPL-2.0-only
"""What differs between architectures. A new one is a new entry here and a config fragment."""

import platform
from dataclasses import dataclass

from foliolab.errors import UsageError


@dataclass(frozen=True)
class Architecture:
    """One guest architecture."""

    name: str
    """Its name on our command line, and tuxmake's."""
    machine: str
    """What ``uname -m`` prints there."""
    elf_machine: int
    """e_machine of its executables."""
    image: str
    """The bootable kernel, as tuxmake names it among its artifacts."""
    page_sizes: tuple[int, ...]
    """Base page sizes that can be configured, in bytes; the first is the default."""
    qemu: str
    qemu_package: str
    qemu_machine: tuple[str, ...]
    """QEMU options for machine and CPU under emulation."""
    emulation: str
    """Value of QEMU's -accel without KVM."""
    console: str
    """Kernel name of the serial console."""
    compiler: str
    """C compiler for kernels and guest programs."""
    compiler_package: str

    @property
    def native(self) -> bool:
        """Whether this machine is of that architecture, so that KVM may run it."""
        return platform.machine() == self.machine


X86_64 = Architecture(
    name="x86_64",
    machine="x86_64",
    elf_machine=62,
    image="bzImage",
    page_sizes=(4096,),
    qemu="qemu-system-x86_64",
    qemu_package="qemu-system-x86",
    qemu_machine=("-machine", "q35", "-cpu", "max"),
    # QEMU's multi-threaded emulation races with the guest's patching of its own code
    # (static keys): about one boot in 25 dies with "Oops: int3".
    emulation="tcg,thread=single",
    console="ttyS0",
    compiler="x86_64-linux-gnu-gcc",
    compiler_package="gcc",
)

ARCHITECTURES = {arch.name: arch for arch in (X86_64,)}


def architecture(name: str) -> Architecture:
    """Look an architecture up by name."""
    try:
        return ARCHITECTURES[name]
    except KeyError:
        known = ", ".join(ARCHITECTURES)
        raise UsageError(f"There is no architecture '{name}'; known: {known}.") from None

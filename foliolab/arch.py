# SPDX-License-Identifier: GPL-2.0-only
"""What differs between architectures. A new one is a new entry here and some config fragments.

A machine is an architecture with a page size, such as arm64-64k.
"""

import platform
from collections.abc import Collection
from dataclasses import dataclass, field

from foliolab.errors import UsageError, require_known

Bytes = int
"""How large something is."""


@dataclass(frozen=True)
class TinyGuest:
    """A guest that counts down from a hundred million and switches itself off, which takes no time on a processor.

    A hypervisor that has to interpret its guests, as some nested ones do, takes minutes.
    """

    image: bytes = field(repr=False)
    options: tuple[str, ...]
    """QEMU's, with the image's file as {image}."""
    status: int
    """With which QEMU exits once the guest has run."""


@dataclass(frozen=True)
class Architecture:
    name: str
    """Its name on our command line, and tuxmake's."""
    machine: str
    """What ``uname -m`` prints there."""
    source: str
    """Its directory below arch/ in the kernel's source."""
    debian: str
    elf_machine: int
    """e_machine of its executables."""
    image: str
    """The bootable kernel, as tuxmake names it among its artifacts."""
    image_bytes: tuple[int, str]
    """Where that says how much memory the kernel takes: an offset, and the number's form for struct."""
    page_sizes: tuple[int, ...]
    """Base page sizes that can be configured, in bytes; the first is the default."""
    qemu: str
    qemu_machine: tuple[str, ...]
    """QEMU options for machine and CPU under emulation."""
    timed_machine: tuple[str, ...]
    """The same where virtual time is measured: instructions that move a whole string count as few as possible."""
    kvm_machine: tuple[str, ...]
    """The same under KVM."""
    emulation: str
    """Value of QEMU's -accel without KVM."""
    console: str
    """Kernel name of the serial console."""
    boot_arguments: str
    """For its kernels, beside those that all guests get."""
    counting_boot_arguments: str
    """Of the lab's own kernels besides, where instructions are counted."""
    tiny_guest: TinyGuest
    hang_keys: bool
    """Whether a hung guest is asked for its stacks over the serial console, because the machine has no NMI to send."""
    compiler: str
    """C compiler for kernels and guest programs, called the same on its own machines and on others."""

    @property
    def native(self) -> bool:
        """Whether this machine is of that architecture, so that KVM may run it."""
        return platform.machine() == self.machine

    @property
    def headers(self) -> str:
        """Where the C library's headers are on this machine."""
        return "/usr/include" if self.native else f"/usr/{self.compiler.removesuffix('-gcc')}/include"

    def page_size(self, wanted: int | None) -> int:
        """``wanted`` bytes, or the default; UsageError if it cannot be configured."""
        if wanted is None:
            return self.page_sizes[0]
        if wanted not in self.page_sizes:
            known = ", ".join(size_name(size) for size in self.page_sizes)
            raise UsageError(f"{self.name} has no pages of {size_name(wanted)}; it has {known}.")
        return wanted


def size_name(page_size: int) -> str:
    """A page size as the command line and the fragments write it: "64k"."""
    return f"{page_size >> 10}k"


def _boot_disk(code: str) -> bytes:
    """A disk whose boot sector is ``code``. A BIOS boots from none that is smaller than a cylinder."""
    return (bytes.fromhex(code).ljust(510, b"\0") + b"\x55\xaa").ljust(1 << 20, b"\0")


X86_64 = Architecture(
    name="x86_64",
    machine="x86_64",
    source="x86",
    debian="amd64",
    elf_machine=62,
    image="bzImage",
    image_bytes=(0x260, "<I"),
    page_sizes=(4096,),
    qemu="qemu-system-x86_64",
    qemu_machine=("-machine", "q35", "-cpu", "max"),
    # QEMU counts each step of such an instruction. Without these features, a step is of eight bytes and not of one.
    timed_machine=("-machine", "q35", "-cpu", "max,-erms,-fsrm"),
    kvm_machine=("-machine", "q35", "-cpu", "max"),
    # QEMU's multi-threaded emulation races with the guest's patching of its own code
    # (static keys): about one boot in 25 dies with "Oops: int3".
    emulation="tcg,thread=single",
    console="ttyS0",
    boot_arguments="unknown_nmi_panic no_timer_check",  # the check of the timer fails when the host is slow
    # Calibrating it takes 20 s of loops, and then the kernel takes another timer all the same.
    counting_boot_arguments="nolapic_timer",
    tiny_guest=TinyGuest(
        # A boot sector: mov $100000000, %ecx; dec %ecx; jnz to the dec; mov $0xf4, %dx; mov $0x10, %al;
        # out %al, (%dx); hlt; jmp to the hlt. Port 0xf4 is QEMU's debug exit device, which ends QEMU with
        # the status 2 * value + 1.
        image=_boot_disk("66b900e1f505664975fcbaf400b010eef4ebfd"),
        options=(
            *("-drive", "file={image},format=raw,if=ide,snapshot=on"),
            *("-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
        ),
        status=0x21,
    ),
    hang_keys=False,
    compiler="x86_64-linux-gnu-gcc",
)

ARM64 = Architecture(
    name="arm64",
    machine="aarch64",
    source="arm64",
    debian="arm64",
    elf_machine=183,
    image="Image",
    image_bytes=(0x10, "<Q"),
    page_sizes=(4096, 16384, 65536),
    qemu="qemu-system-aarch64",
    qemu_machine=("-machine", "virt,gic-version=3", "-cpu", "max,pauth=off"),
    timed_machine=("-machine", "virt,gic-version=3", "-cpu", "max,pauth=off"),
    # KVM gives a guest the CPU and the interrupt controller that the machine has, and no others.
    kvm_machine=("-machine", "virt,gic-version=host", "-cpu", "host"),
    # Here a static key is one instruction, written at once. 100 guests of two CPUs switched keys 47,000
    # times under load, and none came to harm; of as busy x86_64 ones, more than half did.
    emulation="tcg",
    console="ttyAMA0",
    boot_arguments="",
    counting_boot_arguments="",
    tiny_guest=TinyGuest(
        # mov w1, #0xe100; movk w1, #0x5f5, lsl #16; subs w1, w1, #1; b.ne to the subs; mov w0, #8;
        # movk w0, #0x8400, lsl #16; hvc #0; wfi; b to the wfi. The number in w0 asks the firmware, for which
        # KVM and QEMU stand in, to switch the machine off.
        image=bytes.fromhex("01209c52a1bea07221040071e1ffff54000180520080b072020000d47f2003d5ffffff17"),
        options=("-kernel", "{image}"),
        status=0,
    ),
    hang_keys=True,
    compiler="aarch64-linux-gnu-gcc",
)

ARCHITECTURES = {arch.name: arch for arch in (X86_64, ARM64)}

NATIVE = next((arch for arch in ARCHITECTURES.values() if arch.native), X86_64)
"""That of this machine, which the command line means by default; elsewhere all are foreign, and emulated."""


def architecture(name: str) -> Architecture:
    """UsageError for a name that is not there."""
    require_known("There is no architecture", [name], ARCHITECTURES)
    return ARCHITECTURES[name]


def machine_name(arch: str, page_size: int) -> str:
    """The name of ``arch`` with pages of ``page_size`` bytes."""
    return f"{arch}-{size_name(page_size)}"


MACHINES = tuple(machine_name(arch.name, size) for arch in ARCHITECTURES.values() for size in arch.page_sizes)


def applies(machines: Collection[str], machine: str) -> bool:
    """Whether what is restricted to ``machines``, or to none, is for ``machine``."""
    return not machines or machine in machines

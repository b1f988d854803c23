# SPDX-License-Identifier: GPL-2.0-only
"""The machines that tests boot guests of."""

import os
from dataclasses import dataclass

from foliolab.arch import ARM64, X86_64, Architecture, machine_name
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel


@dataclass(frozen=True)
class Machine:
    arch: Architecture
    page_size: int
    extras: tuple[str, ...]
    """Of its lab kernel: those of experiments on this machine, so that no test needs another one."""

    def kernel(self) -> BuiltKernel:
        request = KernelRequest(self.arch, "patched", extras=self.extras, page_size=self.page_size)
        return build(request)

    def __str__(self) -> str:
        return machine_name(self.arch.name, self.page_size)


X86_64_4K = Machine(X86_64, 4096, ())
ARM64_4K, ARM64_16K, ARM64_64K = (Machine(ARM64, size, ("xfs",)) for size in ARM64.page_sizes)

ALL_KERNELS = os.environ.get("FOLIOLAB_KERNELS") == "all"
"""Whether to boot what takes kernels of its own: each costs some eight minutes of a processor, once."""

MACHINES = (X86_64_4K, ARM64_4K, ARM64_64K) if ALL_KERNELS else (X86_64_4K, ARM64_4K)
"""Where the lab is tested. Pages of 16 KiB differ there by nothing but numbers."""

TESTED = (*MACHINES, ARM64_16K) if ALL_KERNELS else MACHINES
"""Where the kernel's own tests run, which 16 KiB may matter to."""

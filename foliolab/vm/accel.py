# SPDX-License-Identifier: GPL-2.0-only
"""What executes a guest: KVM where it really works, else QEMU's emulation."""

import os
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foliolab import process
from foliolab.arch import Architecture
from foliolab.errors import DiskFull, HostLost, UsageError
from foliolab.files import cache_directory, digest, write_atomic

Wanted = Literal["auto", "kvm", "tcg", "icount"]
"""KVM where it works, else emulation; either of them; emulation that counts instructions."""
COUNTING: Wanted = "icount"
"""What to want where instructions are to be counted."""

KVM, TCG, ICOUNT = "qemu-kvm", "qemu-tcg", "qemu-icount"
"""What samples call what has executed their guests: a processor, emulation, emulation that counts instructions."""

_TINY_GUEST_SECONDS = 5

HOST = "host"
"""What they call a machine that ran the kernel itself."""


def real_time(backend: str) -> bool:
    """Whether seconds are those of a real machine, so that what takes too long is a fault of its own."""
    return backend in (KVM, HOST)


@dataclass(frozen=True)
class Accelerator:
    backend: str
    """KVM, TCG or ICOUNT."""
    options: tuple[str, ...]
    """QEMU's options for machine, CPU and accelerator."""
    patience: float
    """By how much deadlines, which are meant for a real machine, are stretched."""
    max_cpus: int | None = None
    parallel: bool = True
    """Whether a guest's processors run at the same time; else they take turns."""

    @property
    def real_time(self) -> bool:
        return real_time(self.backend)

    @property
    def counts_instructions(self) -> bool:
        """Whether a guest's processor time is the number of its instructions, in nanoseconds."""
        return self.backend == ICOUNT

    def require_cpus(self, cpus: int) -> None:
        """UsageError for a guest of more than it can execute."""
        if self.max_cpus is not None and cpus > self.max_cpus:
            raise UsageError(f"{self.backend} runs guests of one CPU only, not of {cpus}.")


def boot_tiny_guest(arch: Architecture, accelerator: Accelerator) -> str:
    guest = arch.tiny_guest
    seconds = _TINY_GUEST_SECONDS * accelerator.patience
    with tempfile.NamedTemporaryFile(prefix="foliolab-kvm-") as image:
        image.write(guest.image)
        image.flush()
        argv = [process.tool(arch.qemu), *accelerator.options]
        argv += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", "64"]
        argv += [option.format(image=image.name) for option in guest.options]
        try:
            done = subprocess.run(
                process.dying_with_parent(argv),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"a guest of a few instructions did not end within {seconds:g} s"
    if done.returncode == guest.status:
        return ""
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return f"QEMU fails: {words[-1] if words else f'exit status {done.returncode}'}"


def qemu_version(arch: Architecture) -> bytes:
    """What QEMU for ``arch`` says of its version; MissingTool without it."""
    return process.run([process.tool(arch.qemu), "--version"], HostLost)


def kvm_fails(arch: Architecture, *, again: bool = False) -> str:
    """Why KVM runs no guests of ``arch`` here, or nothing: tried once a boot of this machine, then remembered.

    ``again`` tries anew: a busy machine may have missed the deadline.
    """
    if not arch.native:
        return f"this machine is no {arch.name} machine"
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"/dev/kvm: {error.strerror}"
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    key = digest([boot, qemu_version(arch), arch.tiny_guest.image])
    remembered = cache_directory() / "kvm" / f"{arch.name}-{key}"
    if not again and remembered.exists():
        return remembered.read_text()
    failure = boot_tiny_guest(arch, _kvm(arch))
    # If the cache cannot be written, the next call boots again.
    with suppress(OSError, DiskFull):
        write_atomic(remembered, failure)
    return failure


def choose(arch: Architecture, wanted: Wanted = "auto", *, timed: bool = False) -> Accelerator:
    """The accelerator for ``wanted``; UsageError if KVM is asked for and does not work.

    With ``timed``, disks take time, so the guest's clock has to be one of instructions; UsageError if it cannot be.
    """
    if timed and wanted not in ("auto", COUNTING):
        raise UsageError(f"A disk takes time on a clock of instructions: use --accelerator {COUNTING}, not {wanted}.")
    if timed or wanted == COUNTING:
        # One instruction takes one virtual nanosecond, so the guest's clock counts instructions.
        machine = arch.timed_machine if timed else arch.qemu_machine
        options = (*machine, "-accel", arch.emulation, "-icount", "shift=0,sleep=off")
        return Accelerator(ICOUNT, options, patience=12, max_cpus=1, parallel=False)
    if wanted in ("auto", "kvm"):
        failure = kvm_fails(arch)
        if not failure:
            return _kvm(arch)
        if wanted == "kvm":
            raise UsageError(f"KVM does not work here: {failure}.")
    parallel = "thread=single" not in arch.emulation
    return Accelerator(TCG, (*arch.qemu_machine, "-accel", arch.emulation), patience=4, parallel=parallel)


def _kvm(arch: Architecture) -> Accelerator:
    return Accelerator(KVM, (*arch.kvm_machine, "-accel", "kvm"), patience=1)

# SPDX-License-Identifier: GPL-2.0-only
"""What executes a guest: KVM where it really works, else QEMU's emulation."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foliolab import process
from foliolab.arch import Architecture
from foliolab.errors import HostLost, UsageError
from foliolab.files import digest, write_atomic
from foliolab.paths import cache_directory

Wanted = Literal["auto", "kvm", "tcg", "icount"]

_KVM_DEADLINE_SECONDS = 5

# mov $0xf4, %dx; mov $0x10, %al; out %al, (%dx); hlt; jmp to the hlt. Port 0xf4 is QEMU's
# debug exit device, which ends QEMU with the status 2 * value + 1.
_BOOT_SECTOR = bytes.fromhex("baf400b010eef4ebfd").ljust(510, b"\0") + b"\x55\xaa"
_BOOT_SECTOR_STATUS = 0x21


@dataclass(frozen=True)
class Accelerator:
    """One way to execute guests."""

    backend: str
    """The name that samples carry: qemu-kvm, qemu-tcg or qemu-icount."""
    options: tuple[str, ...]
    """QEMU's options for it."""
    patience: float
    """By how much deadlines, which are meant for a real machine, are stretched."""
    max_cpus: int | None = None


@dataclass(frozen=True)
class KvmVerdict:
    """Whether KVM runs guests here, and if not, why."""

    works: bool
    reason: str


def _boot_sector_verdict(arch: Architecture) -> KvmVerdict:
    """Boot a guest of one instruction under KVM: some hosts have the device and cannot run a guest."""
    with tempfile.NamedTemporaryFile(prefix="foliolab-kvm-") as sector:
        sector.write(_BOOT_SECTOR)
        sector.flush()
        argv = [process.tool(arch.qemu, arch.qemu_package), *arch.qemu_machine, "-accel", "kvm"]
        argv += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", "64"]
        argv += ["-drive", f"file={sector.name},format=raw,if=ide,snapshot=on"]
        argv += ["-device", "isa-debug-exit,iobase=0xf4,iosize=1"]
        try:
            done = subprocess.run(
                process.dying_with_parent(argv),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_KVM_DEADLINE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return KvmVerdict(False, f"a guest of one instruction hung for {_KVM_DEADLINE_SECONDS} s under KVM")
    if done.returncode == _BOOT_SECTOR_STATUS:
        return KvmVerdict(True, "a guest ran under KVM")
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return KvmVerdict(False, f"QEMU fails under KVM: {words[-1] if words else f'exit status {done.returncode}'}")


def qemu_version(arch: Architecture) -> bytes:
    """What QEMU for ``arch`` says of its version; MissingTool without it."""
    return process.run([process.tool(arch.qemu, arch.qemu_package), "--version"], HostLost)


def probe_kvm(arch: Architecture, *, again: bool = False) -> KvmVerdict:
    """Whether KVM runs guests of ``arch`` here: tried once a boot of this machine, then remembered.

    ``again`` tries anew: a busy machine may have missed the deadline.
    """
    if not arch.native:
        return KvmVerdict(False, f"this machine is no {arch.name} machine")
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return KvmVerdict(False, f"/dev/kvm: {error.strerror}")
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    remembered = cache_directory() / "kvm" / f"{arch.name}-{digest([boot, qemu_version(arch), _BOOT_SECTOR])}.json"
    if remembered.exists() and not again:
        return KvmVerdict(**json.loads(remembered.read_text()))
    verdict = _boot_sector_verdict(arch)
    write_atomic(remembered, json.dumps({"works": verdict.works, "reason": verdict.reason}))
    return verdict


def choose(arch: Architecture, wanted: Wanted = "auto") -> Accelerator:
    """The accelerator for ``wanted``; UsageError if KVM is asked for and does not work."""
    if wanted == "icount":
        # One instruction takes one virtual nanosecond, so the guest's clock counts instructions.
        options = ("-accel", arch.emulation, "-icount", "shift=0,sleep=off")
        return Accelerator("qemu-icount", options, patience=12, max_cpus=1)
    if wanted in ("auto", "kvm"):
        verdict = probe_kvm(arch)
        if verdict.works:
            return Accelerator("qemu-kvm", ("-accel", "kvm"), patience=1)
        if wanted == "kvm":
            raise UsageError(f"KVM does not work here: {verdict.reason}.")
    return Accelerator("qemu-tcg", ("-accel", arch.emulation), patience=4)

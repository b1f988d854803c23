# SPDX-License-Identifier: GPL-2.0-only
"""Run each stressor in a guest of its own."""

from dataclasses import replace

from foliolab.disks.userland import Packages
from foliolab.files import cache_directory, digest, results_directory
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.name import stem
from foliolab.progress import Reporter
from foliolab.stress.suite import Test, parse
from foliolab.suites.result import Result, boot_for, kept
from foliolab.vm.accel import choose
from foliolab.vm.disk import DataDisk
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import JobResult

_LAYOUT = "1"
"""To be raised when the same test on the same kernel is to be run again: another guest, another reading."""
_SKIPPED = 77
_MEMORY_MIB = 768
_PACKAGES = ("stress-ng",)
_DISKS = (("/dev/vda", "/root", "xfs"), ("/dev/vdb", "/data", "xfs"))
"""The root directory, and room for files."""


def guest_config(kernel: BuiltKernel, report: Reporter) -> GuestConfig:
    """The guest that tests run in, with its disks made."""
    programs = guest_programs(kernel.arch, report)
    archive = initramfs({name: programs[name] for name in ("init", "measure")}, {}, kernel.modules)
    config = GuestConfig(kernel.arch, kernel.image, archive, choose(kernel.arch), memory_mib=_MEMORY_MIB, cpus=2)
    root = Packages(_PACKAGES).prepare(kernel.arch, config, cache_directory(), report)
    room = DataDisk("xfs", 512 << 20).prepare(config, report)
    return replace(config, disks=(root, room))


def run_test(test: Test, kernel: BuiltKernel, config: GuestConfig, boot: int = 1, *, again: bool = False) -> Result:
    """The result of one test on one kernel: of a boot, or what an earlier one has left in the results directory."""
    key = digest([_LAYOUT, kernel.hash, config.accelerator.backend, test.command])
    place = results_directory() / "stress" / f"{stem(kernel.name)}-{test.name}-{key}-{boot}.json"
    argv = ["/bin/measure", "--counters", "/counters", "--root", "/root", "--", "/bin/sh", "-c"]
    argv.append(f"cd /data && {test.command}")
    printed = bytearray()

    def perform(guest: Guest) -> JobResult:
        for device, directory, filesystem in _DISKS:
            guest.run([":mount", device, directory, filesystem]).checked()
        # Of the host's clock; an emulated guest takes as long to begin and to end.
        limit = 400 + 4 * test.seconds
        return guest.run(argv, limit, on_output=lambda _, data: printed.extend(data))

    return kept(
        place, lambda log: boot_for(test.command, config, log, perform, [printed], _SKIPPED), parse, again=again
    )

# SPDX-License-Identifier: GPL-2.0-only
"""Run each of LTP's tests in a guest of its own."""

import json
from dataclasses import replace
from pathlib import Path

from foliolab.disks.userland import Packages
from foliolab.files import cache_directory, digest, full_disk_named, results_directory
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.name import stem
from foliolab.ltp.build import Ltp
from foliolab.ltp.suite import Test, parse
from foliolab.progress import Reporter
from foliolab.suites.result import Result, boot_for, kept
from foliolab.vm.accel import choose
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import JobResult

_LAYOUT = "1"
"""To be raised when the same test on the same kernel is to be run again: another guest, another reading."""
_SKIPPED = 32  # LTP's exit status
_MEMORY_MIB = 1024
_SECONDS = 300
_SPARE_BYTES = 320 << 20
_DISKS = (("/dev/vda", "/root", "xfs"), ("/dev/vdb", "/files/testcases/bin", "ext4"), ("/dev/vdc", "/data", "xfs"))
"""The root directory, LTP's programs, and room for their files. One more is theirs to format."""
_USER = "echo nobody:x:65534:65534::/:/bin/sh >> /etc/passwd"
"""A user whom tests become."""
_ENVIRONMENT = {
    "PATH": "/files/testcases/bin:/usr/sbin:/usr/bin",
    "TMPDIR": "/data",
    "LTPROOT": "/files",
    "LTP_COLORIZE_OUTPUT": "n",
    "LTP_DEV": "/dev/vdd",
    "LTP_DEV_FS_TYPE": "ext4",
    "LTP_RUNTIME_MUL": "0.1",  # what runs for a time would take minutes
    "KCONFIG_PATH": "/files/testcases/config",
}


def guest_config(kernel: BuiltKernel, ltp: Ltp, report: Reporter) -> GuestConfig:
    """The guest that tests run in, with all its disks made."""
    programs = guest_programs(kernel.arch, report)
    ours = {name: programs[name] for name in ("init", "measure")}
    archive = initramfs(ours, {"/files/testcases/config": kernel.config}, kernel.modules)
    config = GuestConfig(kernel.arch, kernel.image, archive, choose(kernel.arch), memory_mib=_MEMORY_MIB, cpus=2)
    root = Packages(("e2fsprogs", "mount", "xfsprogs")).prepare(kernel.arch, config, cache_directory(), report)
    room = DataDisk("xfs", 512 << 20).prepare(config, report)
    return replace(config, disks=(root, Disk(ltp.disk, "raw"), room, _spare()))


def _spare() -> Disk:
    path = cache_directory() / "disks" / "spare.raw"
    with full_disk_named(path), path.open("ab") as stream:
        stream.truncate(_SPARE_BYTES)
    return Disk(path, "raw")


def run_test(
    test: Test, kernel: BuiltKernel, config: GuestConfig, ltp: Ltp, boot: int = 1, *, again: bool = False
) -> Result:
    """The result of one test on one kernel: of a boot, or what an earlier one has left in the results directory."""
    key = digest([_LAYOUT, kernel.hash, config.accelerator.backend, repr(test), ltp.key, json.dumps(_ENVIRONMENT)])
    place = results_directory() / "ltp" / f"{stem(kernel.name)}-{test.name}-{key}-{boot}.json"
    return kept(place, lambda log: _boot(test, config, log), parse, again=again)


def _boot(test: Test, config: GuestConfig, log: Path) -> dict[str, str]:
    printed = bytearray()
    # An emulated guest's clock can run many times as fast as its programs: our deadline is by the host's.
    multiple = "1" if config.accelerator.real_time else "100"
    environment = {**_ENVIRONMENT, "LTP_TIMEOUT_MUL": multiple}
    argv = ["/bin/measure", "--counters", "/counters", "--root", "/root", "--", "/bin/sh", "-c"]
    argv.append(f"{_USER}; {test.command}")

    def perform(guest: Guest) -> JobResult:
        for device, place, filesystem in _DISKS:
            guest.run([":mount", device, place, filesystem]).checked()
        guest.run([":write", DATA_FILE, ""]).checked()  # room
        return guest.run(argv, _SECONDS, env=environment, on_output=lambda _, data: printed.extend(data))

    return boot_for(test.command, config, log, perform, [printed], _SKIPPED)

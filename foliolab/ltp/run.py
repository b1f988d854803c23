# SPDX-License-Identifier: GPL-2.0-only
"""Run each of LTP's tests in a guest of its own."""

import json
from dataclasses import replace
from pathlib import Path

from foliolab.errors import HostLost, NoResult
from foliolab.files import digest, full_disk_named, write_atomic
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.name import stem
from foliolab.kselftest.ktap import Verdict
from foliolab.kselftest.run import EXIT_STATUS, Result
from foliolab.ltp.build import Ltp
from foliolab.ltp.suite import Test, parse
from foliolab.paths import cache_directory, results_directory
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.failure import GuestFailure
from foliolab.vm.guest import Disk, Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import complaints, splats
from foliolab.vm.root import Packages

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
    key = digest([_LAYOUT, kernel.hash, config.accelerator.backend, repr(test), ltp.version])
    place = results_directory() / "ltp" / f"{stem(kernel.name)}-{test.name}-{key}-{boot}.json"
    log = place.with_suffix(".log")
    if again or not place.exists():
        write_atomic(place, json.dumps(_boot(test, config, log)))
    facts = json.loads(place.read_text())
    return Result(parse(facts.pop("output")) | {name: Verdict(value) for name, value in facts.items()}, log)


def _boot(test: Test, config: GuestConfig, log: Path) -> dict[str, str]:
    """Run the test, and leave all that was said in ``log``; returns its output, and what else there is to judge."""
    printed = bytearray()
    console = log.with_suffix(".console")
    # An emulated guest's clock can run many times as fast as its programs: our deadline is by the host's.
    multiple = "1" if config.accelerator.real_time else "100"
    environment = {**_ENVIRONMENT, "LTP_TIMEOUT_MUL": multiple}
    argv = ["/bin/measure", "--counters", "/counters", "--root", "/root", "--", "/bin/sh", "-c"]
    argv.append(f"{_USER}; {test.command}")
    try:
        with Guest(config, console) as guest:
            for device, place, filesystem in _DISKS:
                guest.run([":mount", device, place, filesystem]).checked()
            guest.run([":write", DATA_FILE, ""]).checked()  # room
            done = guest.run(argv, _SECONDS, env=environment, on_output=lambda _, data: printed.extend(data))
            how = f"signal {done.signal}" if done.signal else f"exit status {done.status}"
            ending = Verdict.SKIP if done.status == _SKIPPED else Verdict.FAIL
            ending = ending if done.status or done.signal else Verdict.PASS
    except GuestFailure as failure:
        if isinstance(failure, HostLost | NoResult):  # nothing that the kernel is to blame for
            raise
        how, ending = str(failure), Verdict.FAIL
    words = console.read_text(errors="replace")
    console.unlink()
    complained = complaints(splats(words), real_time=config.accelerator.real_time)
    write_atomic(log, b"\n".join([f"{test.command}: {how}".encode(), bytes(printed), words.encode()]))
    return {
        "output": printed.decode(errors="replace"),
        EXIT_STATUS: ending,
        "the kernel's log": Verdict.FAIL if complained else Verdict.PASS,
    }

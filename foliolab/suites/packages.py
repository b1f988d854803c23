# SPDX-License-Identifier: GPL-2.0-only
"""Tests that are commands for a shell, in a guest with a small Debian; and suites that are packages of Debian's."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from msgspec import Struct

from foliolab.arch import Architecture
from foliolab.disks.userland import Packages
from foliolab.errors import UsageError
from foliolab.files import cache_directory
from foliolab.kernel.built import BuiltKernel
from foliolab.suites.ktap import End
from foliolab.suites.suite import SUITES, Call, ForeignSuite, SuiteOptions, chosen
from foliolab.toml import Place, Text, Texts, read_toml
from foliolab.vm.accel import Accelerator
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Disk, Guest, GuestConfig, OnOutput
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import JobResult

_CHANGING = re.compile(r"0x[0-9a-f]+|\d[\d.]*")  # addresses, figures
_USER = "echo nobody:x:65534:65534::/:/bin/sh >> /etc/passwd"
"""A user whom tests become."""


@dataclass(frozen=True)
class DebianGuest:
    """A guest with packages, and with room for files on XFS, where commands begin."""

    packages: tuple[str, ...]
    memory_mib: int
    seconds: int
    """A command may take, of the host's clock and on a real machine."""
    disks: tuple[Disk, ...] = ()
    """The first of these has programs, on ext4."""
    environment: Callable[[Accelerator], Mapping[str, str] | None] = lambda _: None

    def call(self, command: str, key: tuple[str, ...], group: str = "") -> Call:
        """The test that is this command."""
        return Call(command, key, self._config, partial(self._perform, command), group)

    def _config(self, kernel: BuiltKernel, accelerator: Accelerator) -> GuestConfig:
        programs = guest_programs(kernel.arch)
        ours = {name: programs[name] for name in ("init", "measure")}
        archive = initramfs(ours, {"/files/testcases/config": kernel.config}, kernel.modules)
        config = GuestConfig(kernel.arch, kernel.image, archive, accelerator, memory_mib=self.memory_mib, cpus=2)
        root = Packages(self.packages).prepare(kernel.arch, config, cache_directory())
        room = DataDisk("xfs", 512 << 20).prepare(config)
        return replace(config, disks=(root, room, *self.disks))

    def _perform(self, command: str, guest: Guest, on_output: OnOutput) -> JobResult:
        guest.run([":mount", "/dev/vda", "/root", "xfs"]).checked()
        guest.run([":mount", "/dev/vdb", "/data", "xfs"]).checked()
        guest.run([":write", DATA_FILE, ""]).checked()  # room
        if self.disks:
            guest.run([":mount", "/dev/vdc", "/files/testcases/bin", "ext4"]).checked()
        argv = ["/bin/measure", "--counters", "/counters", "--root", "/root", "--", "/bin/sh", "-c"]
        argv.append(f"exec 2>&1; {_USER}; cd /data && {command}")
        environment = self.environment(guest.config.accelerator)
        return guest.run(argv, self.seconds, env=environment, on_output=on_output)


class PackageSuite(Struct, frozen=True, forbid_unknown_fields=True):
    """A suite of Debian's packages, as SUITES describes it."""

    packages: Texts
    command: Text
    """For a shell, with places for {test}, {seconds} and {seed}."""
    tests: dict[str, Text]
    """Names, and what stands for {test}."""
    what: Text
    """What is counted."""
    counted: Text
    """A pattern of lines with how many were done."""
    failed: str = r"(?!)(?P<words>)"
    """One of lines that say what is wrong."""

    def count(self, output: str) -> int:
        return sum(int(match["count"]) for match in re.finditer(self.counted, output, re.MULTILINE))

    def parse(self, output: str) -> dict[str, End]:
        """Whether anything was done, and what is wrong, by its words, without figures."""
        done = {self.what: End.PASS if self.count(output) else End.FAIL}
        wrong = re.finditer(self.failed, output, re.MULTILINE)
        return done | {_CHANGING.sub("N", match["words"]).strip(): End.FAIL for match in wrong}


def package_suite(name: str) -> PackageSuite:
    return Place(SUITES, name).convert(read_toml(SUITES)[name], PackageSuite)


def packaged(name: str, asked: SuiteOptions, arch: Architecture) -> ForeignSuite:
    """A package of this name, whose tests take as long as they are told."""
    asked.refuse(name, "source")
    seconds, seed = 60 if asked.seconds is None else asked.seconds, 1 if asked.seed is None else asked.seed
    if seconds < 1:
        raise UsageError("--seconds has to be at least 1.")
    found = package_suite(name)
    # An emulated guest takes as long to begin and to end.
    guest = DebianGuest(found.packages, memory_mib=768, seconds=400 + 4 * seconds)
    calls = {}
    for test in chosen({test: test for test in found.tests}, asked.tests, name):
        command = found.command.format(test=found.tests[test], seconds=seconds, seed=seed)
        calls[test] = guest.call(command, (command,))
    title = f"{name} on Linux {{version}}"
    return ForeignSuite(title, name, "2", calls, found.parse, skipped=77, what=found.what, count=found.count)

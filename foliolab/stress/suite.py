# SPDX-License-Identifier: GPL-2.0-only
"""Which stressors of stress-ng are run, and what they say."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from foliolab.errors import UsageError
from foliolab.suites.ktap import End

_STRESSORS = (
    *("brk", "fault", "fork", "madvise", "mincore", "mlock", "mmap", "mmapaddr", "mmapfiles", "mmapfixed", "mmapfork"),
    *("mmapmany", "mprotect", "mremap", "msync", "munmap", "pagemove", "readahead", "remap", "shm", "tmpfs", "tsearch"),
    *("userfaultfd", "vm", "vm-addr", "vm-rw", "vm-segv", "vm-splice"),
)
"""Those that map, change or fault memory."""

_FAILED = re.compile(r"^stress-ng: fail: +\[\d+\] (?P<words>.*)", re.MULTILINE)
_COUNTED = re.compile(r"^stress-ng: metrc: +\[\d+\] (?P<name>[\w-]+) +(?P<operations>\d+) +\d+\.\d+ ", re.MULTILINE)
_CHANGING = re.compile(r"0x[0-9a-f]+|\d[\d.]*")


@dataclass(frozen=True)
class Test:
    name: str
    seconds: int

    @property
    def command(self) -> str:
        """For a shell, in a directory of its own. Status 77: this kernel or machine cannot do it."""
        options = "--verify --metrics-brief --oomable --temp-path ."
        stress = f"stress-ng --{self.name} 2 --timeout {self.seconds} {options}"
        return f"{stress}; status=$?; case $status in 3|4) exit 77;; esac; exit $status"


def chosen(names: Collection[str], seconds: int) -> list[Test]:
    """Those of these names; all of them without names."""
    if seconds < 1:
        raise UsageError("--seconds has to be at least 1.")
    for name in names:
        if name not in _STRESSORS:
            raise UsageError(f"There is no test '{name}'; known: {', '.join(_STRESSORS)}.")
    return [Test(name, seconds) for name in _STRESSORS if not names or name in names]


def parse(output: str) -> dict[str, End]:
    """Whether anything was done, and what stress-ng found wrong, by its words, without figures."""
    done = {"operations": End.PASS if operations(output) else End.FAIL}
    return done | {_CHANGING.sub("N", match["words"]).strip(): End.FAIL for match in _FAILED.finditer(output)}


def operations(output: str) -> int:
    """How many operations were counted."""
    return sum(int(match["operations"]) for match in _COUNTED.finditer(output))

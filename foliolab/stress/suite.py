# SPDX-License-Identifier: GPL-2.0-only
"""Which stressors of stress-ng are run, and which calls trinity makes up."""

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

_CALLS = (
    *("fadvise64", "madvise", "mincore", "mlock", "mmap", "mprotect", "mremap", "msync", "munlock", "munmap"),
    *("pread64", "process_madvise", "readahead", "read", "remap_file_pages"),
)
"""What trinity calls with arguments that it makes up."""

_TRINITY_STARTS = 20
"""Seconds, in which it opens files and makes mappings."""

_FAILED = re.compile(r"^stress-ng: fail: +\[\d+\] (?P<words>.*)", re.MULTILINE)
_COUNTED = re.compile(r"^stress-ng: metrc: +\[\d+\] (?P<name>[\w-]+) +(?P<operations>\d+) +\d+\.\d+ ", re.MULTILINE)
_MADE_UP = re.compile(r"^\[main\] Ran (?P<operations>\d+) syscalls", re.MULTILINE)
_CHANGING = re.compile(r"0x[0-9a-f]+|\d[\d.]*")


@dataclass(frozen=True)
class Test:
    name: str
    """A stressor's, or trinity."""
    seconds: int

    @property
    def command(self) -> str:
        """For a shell, in a directory of its own. Status 77: this kernel or machine cannot do it."""
        if self.name == "trinity":
            calls = " ".join(f"-c {name}" for name in _CALLS)
            # It ends by itself only after a number of calls, and refuses to be root.
            nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups"
            trinity = f"{nobody} trinity -q -l off -C 4 {calls}"
            return f"chmod 777 . && timeout --signal=INT {_TRINITY_STARTS + self.seconds} {trinity}; [ $? = 124 ]"
        options = "--verify --metrics-brief --oomable --temp-path ."
        stress = f"stress-ng --{self.name} 2 --timeout {self.seconds} {options}"
        return f"{stress}; status=$?; case $status in 3|4) exit 77;; esac; exit $status"


def chosen(names: Collection[str], seconds: int) -> list[Test]:
    """Those of these names; all of them without names."""
    known = (*_STRESSORS, "trinity")
    if seconds < 1:
        raise UsageError("--seconds has to be at least 1.")
    for name in names:
        if name not in known:
            raise UsageError(f"There is no test '{name}'; known: {', '.join(known)}.")
    return [Test(name, seconds) for name in known if not names or name in names]


def parse(output: str) -> dict[str, End]:
    """Whether anything was done, and what stress-ng found wrong, by its words, without figures."""
    done = {"operations": End.PASS if operations(output) else End.FAIL}
    return done | {_CHANGING.sub("N", match["words"]).strip(): End.FAIL for match in _FAILED.finditer(output)}


def operations(output: str) -> int:
    """How many operations stress-ng counted, or calls trinity made."""
    return sum(int(match["operations"]) for form in (_COUNTED, _MADE_UP) for match in form.finditer(output))

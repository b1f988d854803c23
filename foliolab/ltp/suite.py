# SPDX-License-Identifier: GPL-2.0-only
"""Which of LTP's tests are run, and what they say."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from foliolab.errors import UsageError
from foliolab.suites.ktap import End, worst

_SYSCALLS = (
    *("cachestat", "fadvise", "madvise", "memfd_create", "mincore", "mlock", "mlock2", "mlockall", "mmap", "mprotect"),
    *("mremap", "msync", "munlock", "munlockall", "munmap", "pread", "preadv", "preadv2", "process_madvise"),
    *("readahead", "remap_file_pages", "sendfile", "splice", "userfaultfd", "vmsplice"),
)
DIRECTORIES = (
    *(f"kernel/syscalls/{name}" for name in _SYSCALLS),
    *(f"kernel/mem/{name}" for name in ("ksm", "mem", "mmapstress", "mtest01", "mtest05", "mtest06", "mtest07")),
    *(f"kernel/mem/{name}" for name in ("page", "shmt", "thp", "tunable", "vma", "vmtests")),
    "kernel/fs/doio",
    "kernel/fs/fsx-linux",
)
"""Below testcases/, where the programs are."""

CHOSEN = {
    "mm": r".*",
    "syscalls": rf"(posix_fadvise|{'|'.join(_SYSCALLS)})\d.*",
    # What maps a file, and what makes one grow a number of times, not for a time.
    "fs": r"rwtest0[34]|gf(0[2-5]|19|27|28)",
    "ltp-aiodio.part3": r"fsx\d+",
}
"""By the file of runtest/ that lists them, a pattern of the tests' names."""

LEFT_OUT = {
    "oom01, oom02, oom03, oom04, oom05, min_free_kbytes": "they end when the guest is out of memory, by luck",
    "swapping01, mtest01w": "they swap for many minutes",
    "cpuset01, cpuset02": "they take NUMA nodes",
    "kallsyms": "it reads addresses of the kernel's, no memory of its own",
    "vma05": "it takes a debugger",
}
"""Of the lists above, what is not run, and why."""

_WHAT = re.compile(r"^(?:\S+:\d+: |\S+ +\d+ +)(?P<kind>TPASS|TFAIL|TBROK|TWARN|TCONF)(?: *[:(])? *(?P<words>.*)")
_CHANGING = re.compile(r"0x[0-9a-f]+|\bLTP_\w+|\d[\d.]*")  # addresses, places, figures
_VERDICTS = {"TPASS": End.PASS, "TCONF": End.SKIP}


@dataclass(frozen=True)
class Test:
    """A line of a file in runtest/."""

    group: str
    """The file."""
    name: str
    command: str
    """For a shell."""

    @property
    def program(self) -> str:
        """What has to have been compiled."""
        return self.command.rpartition(";")[2].split()[0]


def read_lists(lists: Mapping[str, str]) -> tuple[Test, ...]:
    """The tests that are run, of the texts of the files in runtest/; one that two list is as the first has it."""
    left_out = {name for names in LEFT_OUT for name in names.split(", ")}
    tests: dict[str, Test] = {}
    for group, pattern in CHOSEN.items():
        for line in lists[group].splitlines():
            name, _, command = line.partition("#")[0].replace("\t", " ").partition(" ")
            if command and re.fullmatch(pattern, name) and name not in left_out:
                tests.setdefault(name, Test(group, name, command.strip()))
    return tuple(tests.values())


def chosen(tests: Collection[Test], names: Collection[str]) -> list[Test]:
    """Those of these names, or programs; all of them without names."""
    for name in names:
        if not any(name in (test.name, test.program) for test in tests):
            raise UsageError(f"LTP has no test '{name}' among those that are run: {', '.join(t.name for t in tests)}.")
    return [test for test in tests if not names or test.name in names or test.program in names]


def parse(output: str) -> dict[str, End]:
    """The checks in a program's output by their words, without figures; one that is made often ends as its worst."""
    found: dict[str, End] = {}
    for line in output.splitlines():
        if match := _WHAT.match(line):
            name = _CHANGING.sub("N", match["words"]).strip() or match["kind"]
            found = worst(found, {name: _VERDICTS.get(match["kind"], End.FAIL)})
    return found

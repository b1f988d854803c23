# SPDX-License-Identifier: GPL-2.0-only
"""Suites that are packages of Debian's: what they call, and what is read of what they print."""

import re

import pytest

from foliolab.arch import NATIVE
from foliolab.errors import UsageError
from foliolab.suites.ktap import End
from foliolab.suites.packages import package_suite, packaged
from foliolab.suites.suite import ForeignSuite, SuiteOptions

STRESS = package_suite("stress-ng")
TRINITY = package_suite("trinity")

OUTPUT = """\
stress-ng: info:  [84] dispatching hogs: 2 mmap
stress-ng: fail:  [85] mmap: mmap'd region of 4096 bytes does not contain expected data at page 17
stress-ng: fail:  [86] mmap: mmap'd region of 8192 bytes does not contain expected data at page 3
stress-ng: metrc: [84] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [84]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [84] mmap              1250      5.00      3.10      6.80       249.98         126.26
stress-ng: info:  [84] unsuccessful run completed in 5.01 secs
"""


def suite(name: str, *tests: str, seconds: int | None = 5, seed: int | None = None) -> ForeignSuite:
    return packaged(name, SuiteOptions(tests, None, seconds, seed), NATIVE)


def test_what_fails_is_known_by_its_words() -> None:
    wrong = "mmap: mmap'd region of N bytes does not contain expected data at page N"
    assert STRESS.parse(OUTPUT) == {"operations": End.PASS, wrong: End.FAIL}


def test_what_does_nothing_fails() -> None:
    assert STRESS.parse(OUTPUT.replace("1250", "0").replace(" fail: ", " info: ")) == {"operations": End.FAIL}
    assert TRINITY.parse("[main] Ran 0 syscalls. Successes: 0  Failures: 0\n") == {"calls": End.FAIL}
    assert TRINITY.parse("") == {"calls": End.FAIL}


def test_operations_are_counted() -> None:
    assert STRESS.count(OUTPUT) == 1250
    assert (
        TRINITY.count("[main] Bailing main loop because ctrl-c.\n[main] Ran 1049 syscalls. Successes: 1047\n") == 1049
    )


def test_tests_are_chosen_by_name() -> None:
    assert {"mprotect", "userfaultfd", "vm"} <= set(suite("stress-ng").calls)
    (mprotect,) = suite("stress-ng", "mprotect").calls.values()
    assert "--mprotect 2 --timeout 5 --seed 1 --verify" in mprotect.command
    with pytest.raises(UsageError, match="no test 'x' in stress-ng; known: brk, "):
        suite("stress-ng", "x")
    with pytest.raises(UsageError, match="at least 1"):
        suite("stress-ng", seconds=0)


def test_trinity_makes_calls_of_memory_alone_for_a_time_and_from_a_seed() -> None:
    every = suite("trinity", seconds=7, seed=3).calls
    calls = {name: set(re.findall(r"-c (\w+)", call.command)) for name, call in every.items()}
    assert {"mmap", "mprotect", "mremap", "munmap"} <= calls["mapping"]
    assert {"madvise", "process_madvise", "msync", "fadvise64", "readahead"} <= calls["advice"]
    assert calls["all"] == calls["mapping"] | calls["advice"]
    for call in every.values():
        assert " INT 7 chroot --userspec " in call.command
        assert " -s 3 " in call.command
    other = suite("trinity", seconds=7, seed=4).calls
    assert all(other[name].key != every[name].key for name in every)
    assert suite("trinity", seconds=None).calls["all"].command.count(" INT 60 ") == 1

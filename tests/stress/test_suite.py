# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.errors import UsageError
from foliolab.stress.suite import chosen, operations, parse
from foliolab.suites.ktap import End

OUTPUT = """\
stress-ng: info:  [84] dispatching hogs: 2 mmap
stress-ng: fail:  [85] mmap: mmap'd region of 4096 bytes does not contain expected data at page 17
stress-ng: fail:  [86] mmap: mmap'd region of 8192 bytes does not contain expected data at page 3
stress-ng: metrc: [84] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [84]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [84] mmap              1250      5.00      3.10      6.80       249.98         126.26
stress-ng: info:  [84] unsuccessful run completed in 5.01 secs
"""


def test_what_fails_is_known_by_its_words() -> None:
    wrong = "mmap: mmap'd region of N bytes does not contain expected data at page N"
    assert parse(OUTPUT) == {"operations": End.PASS, wrong: End.FAIL}


def test_what_does_nothing_fails() -> None:
    assert parse(OUTPUT.replace("1250", "0").replace(" fail: ", " info: ")) == {"operations": End.FAIL}


def test_operations_are_counted() -> None:
    assert operations(OUTPUT) == 1250


def test_tests_are_chosen_by_name() -> None:
    names = [test.name for test in chosen([], 5)]
    assert {"mprotect", "userfaultfd", "vm"} <= set(names)
    (mprotect,) = chosen(["mprotect"], 5)
    assert "--mprotect 2 --timeout 5 --verify" in mprotect.command
    with pytest.raises(UsageError, match="no test 'x'; known: brk, "):
        chosen(["x"], 5)
    with pytest.raises(UsageError, match="at least 1"):
        chosen([], 0)

# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.errors import UsageError
from foliolab.suites.ktap import End
from foliolab.suites.ltp import CHOICE, parse, read_lists
from foliolab.suites.suite import chosen

LISTS = dict.fromkeys(CHOICE.chosen, "") | {
    "mm": "#DESCRIPTION:Memory Mgmt tests\nmmap21_01 mmap21 -m 10000\n\noom01 oom01\nksm05 ksm05 -I 10\n",
    "syscalls": "mmap21_01 mmap21 -m 1\nmmap01\tmmap01\nopen01 open01\npreadv201_64 preadv201_64\n",
    "fs": "gf02 growfiles -W gf02 -d $TMPDIR\nrwtest03 export LTPROOT; rwtest -N rwtest03\nrwtest01 rwtest\n",
}


def test_lists_are_read_and_what_is_left_out_stays_out() -> None:
    tests = read_lists(LISTS)
    assert [(test.group, name) for name, test in tests.items()] == [
        ("mm", "mmap21_01"),
        ("mm", "ksm05"),
        ("syscalls", "mmap01"),
        ("syscalls", "preadv201_64"),
        ("fs", "gf02"),
        ("fs", "rwtest03"),
    ]
    assert tests["mmap21_01"].command == "mmap21 -m 10000"  # listed twice: as it is listed first
    assert [test.program for test in tests.values()][-2:] == ["growfiles", "rwtest"]


def test_a_test_is_chosen_by_its_name_or_by_its_program() -> None:
    programs = {name: test.program for name, test in read_lists(LISTS).items()}
    assert chosen(programs, ["mmap21", "gf02"], "ltp") == ["mmap21_01", "gf02"]
    assert chosen(programs, [], "ltp") == list(programs)
    with pytest.raises(UsageError, match="no test 'oom01' in ltp; known: mmap21, ksm05, "):
        chosen(programs, ["oom01"], "ltp")


def test_checks_are_known_by_their_words() -> None:
    """Of both forms that LTP has, without what every run has another of; one that fails once has failed."""
    output = """\
tst_test.c:2028: TINFO: LTP version: 20260529
mmap18.c:96: TPASS: Stack grows in unmapped region at 0x7f1200
mmap18.c:96: TPASS: Stack grows in unmapped region at 0x7f3400
madvise05.c:12: TPASS: issue has not been reproduced
madvise05.c:14: TFAIL: issue has not been reproduced
readahead02.c:274: TCONF: Your system doesn't have /proc/self/io
mmap10      1  TPASS  :  mmaped /data/LTP_abc123/file 3 times
mmap10      2  TBROK  :  tst_tmpdir.c:99: unexpected signal 11 received (pid = 77).
Summary:
passed   3
"""
    assert parse(output) == {
        "Stack grows in unmapped region at N": End.PASS,
        "issue has not been reproduced": End.FAIL,
        "Your system doesn't have /proc/self/io": End.SKIP,
        "mmaped /data/N/file N times": End.PASS,
        "tst_tmpdir.c:N: unexpected signal N received (pid = N).": End.FAIL,
    }

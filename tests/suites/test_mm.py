# SPDX-License-Identifier: GPL-2.0-only
import re
from pathlib import Path

import pytest

from foliolab.arch import ARCHITECTURES
from foliolab.errors import BadExperiment, UsageError
from foliolab.kernel.source import Source
from foliolab.suites.mm import chosen_tests, selftests


def test_every_program_is_run_or_left_out_with_a_reason(source: Source) -> None:
    makefile = (source.tree / "tools/testing/selftests/mm/Makefile").read_text()
    made = set(re.findall(r"^\s*(?:TEST_GEN_FILES|VMTARGETS) \+?:?= ([\w-]+)$", makefile, re.MULTILINE))
    script = (source.tree / "tools/testing/selftests/mm/run_vmtests.sh").read_text()
    called = set(re.findall(r"run_test (?:sudo -u nobody |bash )?\./([\w.-]+)", script))
    left_out = {name for names in selftests().left_out for name in names.split(", ")}
    ours = {test.program for test in selftests().tests}
    scripts = {"va_high_addr_switch.sh"}  # asks whether the program can be run, and runs it
    bit_sizes = {"protection_keys_32", "protection_keys_64"}
    assert len(made) > 40
    assert (made | called) - scripts - bit_sizes - ours == left_out & (made | called)
    assert not ours & left_out


def test_a_test_is_chosen_by_its_program_or_by_its_whole_command() -> None:
    assert [test.command for test in chosen_tests(["khugepaged"], "x86_64")] == ["khugepaged", "khugepaged -s 2"]
    assert [test.command for test in chosen_tests(["khugepaged -s 2", "cow"], "x86_64")] == ["cow", "khugepaged -s 2"]
    for arch in ARCHITECTURES:
        assert len(chosen_tests([], arch)) > 40


KNOWN = ", ".join(ARCHITECTURES)


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        ('{ command = " " }', "'tests[0].command' is wrong: "),
        ('{ command = "cow" }, { command = "cow" }', "'tests[1].command' is 'cow' a second time."),
        ('{ command = "cow", arches = ["mips"] }', f"'tests[0].arches[0]' has to be one of {KNOWN}."),
        ('{ command = "cow", second = 1 }', "'tests[0].second' is not a key that is known here."),
    ],
)
def test_mistakes_are_named_with_their_keys(tests: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "kselftests.toml"
    file.write_text(f"tests = [{tests}]\n[left_out]\n")
    with pytest.raises(BadExperiment) as error:
        selftests(file)
    assert f"{file}: {words}" in str(error.value)


def test_an_unknown_test_is_named() -> None:
    with pytest.raises(UsageError, match=r"no test 'soft-dirty' in mm for arm64; known: pagemap_ioctl, "):
        chosen_tests(["cow", "soft-dirty"], "arm64")

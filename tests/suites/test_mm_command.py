# SPDX-License-Identifier: GPL-2.0-only
"""The real command, over programs that take seconds."""

import json
from pathlib import Path
from typing import cast

import pytest

from foliolab.arch import ARM64, X86_64, Architecture
from foliolab.campaign.program import require_static
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.source import Source
from foliolab.suites.mm import build_programs, chosen_tests, reserve_huge_pages
from foliolab.vm.guest import Guest
from foliolab.vm.outcome import JobResult
from tests.cli.command import lab, sentence


@pytest.mark.boot
def test_both_kernels_are_tried_and_nothing_is_run_twice(tmp_path: Path, stock_kernel: BuiltKernel) -> None:
    stock = stock_kernel.name
    argv = ["kselftest", "--test", "mkdirty", "--test", "madv_populate", "--json"]
    both = ["--kernel", stock, "--kernel", "patched"]
    done = lab(*argv, *both, FOLIOLAB_RESULTS=str(tmp_path))
    tests = json.loads(done.stdout)["tests"]
    assert (done.returncode, list(tests)) == (0, ["mkdirty", "madv_populate"]), done.stderr
    for found in tests.values():
        assert found[stock] == found["patched"]
        assert found["patched"]["exit status"] == "pass"
        assert found["accidents"] == {}
        assert len(found["patched"]) > 5
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "kselftests").iterdir()}
    assert len(kept) == 8  # a result and a log each
    assert lab(*argv, *both, FOLIOLAB_RESULTS=str(tmp_path)).stdout == done.stdout
    for kernels in (["patched", stock], [stock]):
        options = [word for kernel in kernels for word in ("--kernel", kernel)]
        others = json.loads(lab(*argv, *options, FOLIOLAB_RESULTS=str(tmp_path)).stdout)["tests"]
        for command, found in others.items():
            assert list(found) == [*kernels, "worse", "remarks", "accidents", "logs"]
            assert [found[kernel] for kernel in kernels] == [tests[command][kernel] for kernel in kernels]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "kselftests").iterdir()} == kept


@pytest.mark.parametrize("arch", [X86_64, ARM64], ids=lambda arch: arch.name)
def test_programs_are_static(arch: Architecture, source: Source) -> None:
    """One that is plain, one that shares a file with another, one that takes a library."""
    tests = chosen_tests(["mdwe_test", "uffd-stress anon 20 16", "migration"], arch.name)
    programs = build_programs(arch, source, tests)
    assert sorted(programs) == ["mdwe_test", "migration", "uffd-stress"]
    for path in programs.values():
        require_static(path, arch)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seed", "1"], "--suite mm takes no --seed."),
        (["--suite", "trinity", "--source", "."], "--suite trinity takes no --source."),
        (["--suite", "ltp", "--source", ".", "--seconds", "1"], "--suite ltp takes no --seconds."),
        (["--suite", "ltp"], "--suite ltp takes --source DIR, a git tree of LTP."),
    ],
)
def test_an_option_of_another_suite_ends_in_a_sentence(options: list[str], words: str) -> None:
    done = lab("kselftest", *options)
    assert (sentence(done), done.returncode) == (words, 2)


def test_an_unknown_test_ends_in_a_sentence() -> None:
    done = lab("kselftest", "--test", "nosuch")
    assert sentence(done).startswith("There is no test 'nosuch' in mm for ")
    assert done.returncode == 2


class FakeGuest:
    """Reserves huge pages of a size, as far as it can."""

    def __init__(self, size_kib: int, most: int) -> None:
        self.size_kib = size_kib
        self.most = most
        self.asked = self.reserved = 0

    def run(self, argv: list[str]) -> JobResult:
        output = f"{self.reserved}\n"
        if argv[0] == ":write":
            self.asked = int(argv[2])
            self.reserved = min(self.asked, self.most)
        elif argv[1] == "/proc/meminfo":
            output = f"MemTotal:  2000000 kB\nHugePages_Total:  0\nHugepagesize:  {self.size_kib} kB\n"
        return JobResult(tuple(argv), 0, 0, output.encode(), b"", 0, 0.0)


@pytest.mark.parametrize(
    ("size_kib", "most", "asked", "got"),
    [(2 << 10, 999, 128, 128), (32 << 10, 999, 8, 8), (512 << 10, 4, 1, 1), (512 << 10, 0, 1, 0), (2 << 10, 9, 128, 9)],
)
def test_huge_pages_leave_the_guest_its_memory(size_kib: int, most: int, asked: int, got: int) -> None:
    """At least one is asked for; if there is none, that is for the tests to find."""
    guest = FakeGuest(size_kib, most)
    assert reserve_huge_pages(cast(Guest, guest), 256) == f"huge pages of {size_kib} KiB: {got} of {asked}\n"
    assert guest.asked == asked

# SPDX-License-Identifier: GPL-2.0-only
"""The real command, over programs that take seconds."""

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from foliolab.arch import ARM64, X86_64, Architecture
from foliolab.cli.kselftest import compared, markdown, regressions
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.source import Source
from foliolab.kselftest.ktap import Verdict
from foliolab.kselftest.run import Result, build_programs, reserve_huge_pages
from foliolab.kselftest.suite import chosen
from foliolab.program.static import require_static
from foliolab.progress import Reporter
from foliolab.vm.failure import JobResult
from foliolab.vm.guest import Guest
from tests.cli.command import lab, sentence

PASS, SKIP, FAIL = Verdict.PASS, Verdict.SKIP, Verdict.FAIL
KERNEL = BuiltKernel("hash", Path("image"), "patched", "lab", X86_64, "6.12.0", 4096, ours=True)


@pytest.mark.boot
def test_both_kernels_are_tried_and_nothing_is_run_twice(tmp_path: Path) -> None:
    argv = ["kselftest", "--test", "mkdirty", "--test", "madv_populate", "--json"]
    done = lab(*argv, FOLIOLAB_RESULTS=str(tmp_path))
    tests = json.loads(done.stdout)["tests"]
    assert (done.returncode, list(tests)) == (0, ["mkdirty", "madv_populate"]), done.stderr
    for found in tests.values():
        assert found["unpatched"] == found["patched"]
        assert found["patched"]["exit status"] == "pass"
        assert len(found["patched"]) > 5
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "kselftests").iterdir()}
    assert len(kept) == 8  # a result and a log each
    assert lab(*argv, FOLIOLAB_RESULTS=str(tmp_path)).stdout == done.stdout
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "kselftests").iterdir()} == kept


@pytest.mark.parametrize("arch", [X86_64, ARM64], ids=lambda arch: arch.name)
def test_programs_are_static(arch: Architecture, source: Source) -> None:
    """One that is plain, one that shares a file with another, one that takes a library."""
    tests = chosen(["mdwe_test", "uffd-stress anon 20 16", "migration"], arch.name)
    programs = build_programs(arch, source, tests, Reporter())
    assert sorted(programs) == ["mdwe_test", "migration", "uffd-stress"]
    for path in programs.values():
        require_static(path, arch)


def test_an_unknown_test_ends_in_a_sentence() -> None:
    done = lab("kselftest", "--test", "nosuch")
    assert sentence(done).startswith("There is no selftest 'nosuch' for ")
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("unpatched", "boots", "worse"),
    [((PASS,) * 6, 6, ["merges"]), ((PASS, PASS, FAIL), 3, []), ((FAIL,), 1, [])],
)
def test_what_ours_fails_the_unpatched_kernel_is_tried_at_again(
    unpatched: tuple[Verdict, ...], boots: int, worse: list[str]
) -> None:
    """And not the other way round: a failure of ours stays one, however often it does not come."""
    kernels = [replace(KERNEL, name=name) for name in ("unpatched", "patched")]
    tried = []

    def run(kernel: BuiltKernel, boot: int) -> Result:
        tried.append((kernel.name, boot))
        verdict = FAIL if kernel.name == "patched" else unpatched[boot - 1]
        return Result({"merges": verdict}, Path("log"))

    assert regressions(compared(kernels, run)) == worse
    assert [boot for flavour, boot in tried if flavour == "unpatched"] == list(range(1, boots + 1))
    assert tried.count(("patched", 1)) == len(tried) - boots == 1


DEAD = {"exit status": FAIL}


@pytest.mark.parametrize(
    ("ours", "unpatched", "worse"),
    [
        # One dead reboot, or five: they excuse what dies, not what fails.
        ({"reads": FAIL, "exit status": FAIL}, [DEAD], ["reads"]),
        ({"reads": SKIP, "exit status": PASS}, [DEAD], ["reads"]),
        (DEAD, [DEAD], []),
        (DEAD, [{"reads": FAIL, "exit status": FAIL}], []),
        # What really fails after that still counts, and what passes does not undo it.
        ({"reads": FAIL, "exit status": FAIL}, [DEAD, {"reads": FAIL, "exit status": FAIL}], []),
        (DEAD, [{"reads": PASS, "exit status": FAIL}, DEAD, {"reads": PASS, "exit status": PASS}], []),
        # A subtest that only a later boot gets to.
        ({"reads": PASS, "exit status": PASS, "writes": FAIL}, [{"reads": PASS, "writes": PASS}], ["writes"]),
        ({"reads": FAIL}, [{"reads": PASS, "exit status": PASS, "writes": PASS}, DEAD], ["reads"]),
    ],
)
def test_a_boot_that_dies_excuses_only_one_that_dies(
    ours: dict[str, Verdict], unpatched: list[dict[str, Verdict]], worse: list[str]
) -> None:
    kernels = [replace(KERNEL, name=name) for name in ("unpatched", "patched")]
    boots = [{"reads": PASS, "exit status": PASS}, *unpatched]

    def run(kernel: BuiltKernel, boot: int) -> Result:
        return Result(ours if kernel.name == "patched" else boots[min(boot, len(boots)) - 1], Path("log"))

    assert regressions(compared(kernels, run)) == worse


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
        return JobResult(tuple(argv), 0, 0, output.encode(), b"", 0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("size_kib", "most", "asked", "got"),
    [(2 << 10, 999, 128, 128), (32 << 10, 999, 8, 8), (512 << 10, 4, 1, 1), (512 << 10, 0, 1, 0), (2 << 10, 9, 128, 9)],
)
def test_huge_pages_leave_the_guest_its_memory(size_kib: int, most: int, asked: int, got: int) -> None:
    """At least one is asked for; if there is none, that is for the tests to find."""
    guest = FakeGuest(size_kib, most)
    assert reserve_huge_pages(cast(Guest, guest), 256) == f"huge pages of {size_kib} KiB: {got} of {asked}\n"
    assert guest.asked == asked


def test_what_is_worse_is_named_in_the_table() -> None:
    log = Path("log")
    before, after = Result({"reads": PASS, "writes": PASS}, log), Result({"reads": PASS, "writes": FAIL}, log)
    same = {"unpatched": after, "patched": after}
    assert regressions(same) == regressions({"patched": after}) == []
    lines = markdown("Title", {"cow": {"unpatched": before, "patched": after}, "mdwe_test": same}, {}).splitlines()
    assert lines[0] == "## Title"
    assert "| test | unpatched → patched: pass / skip / fail | verdict |" in lines
    assert "| `cow` | 2 / 0 / 0 → 1 / 0 / 1 | WORSE |" in lines
    assert "| `mdwe_test` | 1 / 0 / 1 | ok |" in lines
    assert "- cow: writes (unpatched pass, patched fail)" in lines


def test_a_row_of_a_group_counts_tests_by_their_exit_status() -> None:
    ends = ((PASS, PASS), (SKIP, SKIP), (PASS, FAIL))
    results = {
        f"test{number}": {
            "unpatched": Result({"reads": PASS, "exit status": before}, Path("log")),
            "patched": Result({"reads": PASS, "exit status": after}, Path("log")),
        }
        for number, (before, after) in enumerate(ends)
    }
    lines = markdown("Title", results, {}, dict.fromkeys(results, "all")).splitlines()
    assert "| all | 2 / 1 / 0 → 1 / 1 / 1 | WORSE |" in lines
    alone = {name: {"patched": found["patched"]} for name, found in results.items()}
    assert "| all | 1 / 1 / 1 | not compared |" in markdown("Title", alone, {}, dict.fromkeys(alone, "all"))

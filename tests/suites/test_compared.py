# SPDX-License-Identifier: GPL-2.0-only
"""Results of tests on kernels: when one is worse, and how that is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import X86_64
from foliolab.kernel.built import BuiltKernel
from foliolab.report.suites import markdown, print_results
from foliolab.suites.ktap import End
from foliolab.suites.result import KERNEL_LOG as LOG
from foliolab.suites.result import Result, compared, regressions

PASS, SKIP, FAIL = End.PASS, End.SKIP, End.FAIL
KERNEL = BuiltKernel("hash", Path("image"), "patched", "lab", X86_64, "6.12.0", 4096, ours=True)


@pytest.mark.parametrize(
    ("unpatched", "boots", "worse"), [((PASS,) * 6, 6, ["merges"]), ((PASS, PASS, FAIL), 3, []), ((FAIL,), 1, [])]
)
def test_what_ours_fails_the_unpatched_kernel_is_tried_at_again(
    unpatched: tuple[End, ...], boots: int, worse: list[str]
) -> None:
    """And not the other way round: what ours fails twice stays a failure, however often it does not come."""
    kernels = [replace(KERNEL, name=name) for name in ("unpatched", "patched")]
    tried = []

    def run(kernel: BuiltKernel, boot: int) -> Result:
        tried.append((kernel.name, boot))
        verdict = FAIL if kernel.name == "patched" else unpatched[boot - 1]
        return Result({"merges": verdict}, Path("log"), remark="slow" if boot == 2 else "")

    found = compared(kernels, run)
    assert regressions(found) == worse
    assert {result.remark for result in found.values()} == {"slow" if boots > 1 else ""}
    assert [boot for flavour, boot in tried if flavour == "unpatched"] == list(range(1, boots + 1))
    assert [boot for flavour, boot in tried if flavour == "patched"] == ([1] if boots == 1 else [1, 2])


@pytest.mark.parametrize(
    ("ours", "boots", "worse"),
    [
        # Luck, and then what is none.
        ([{"reads": FAIL, LOG: PASS}, {"reads": PASS, LOG: PASS}], 2, []),
        ([{"reads": FAIL, LOG: PASS}, {"reads": SKIP, LOG: PASS}], 2, ["reads"]),
        ([{"reads": FAIL, LOG: PASS}, {"reads": PASS, LOG: FAIL}], 2, [LOG]),
        ([{"reads": FAIL, LOG: PASS}, {LOG: PASS}], 2, ["reads"]),
        # No second boot undoes these.
        ([{"reads": PASS, LOG: FAIL}], 1, [LOG]),
        ([{LOG: PASS}], 1, ["reads"]),
    ],
)
def test_what_ours_fails_once_is_luck_but_no_death_and_no_complaint(
    ours: list[dict[str, End]], boots: int, worse: list[str]
) -> None:
    tried = []

    def run(kernel: BuiltKernel, boot: int) -> Result:
        tried.append(kernel.name)
        return Result(ours[boot - 1] if kernel.name == "patched" else {"reads": PASS, LOG: PASS}, Path("log"))

    found = compared([replace(KERNEL, name=name) for name in ("unpatched", "patched")], run)
    assert regressions(found) == worse
    assert tried.count("patched") == boots
    shown = "- cow: reads (unpatched pass, patched pass in one boot of 2)" in markdown("Title", {"cow": found}, {})
    assert shown == (worse == [])


@pytest.mark.parametrize(
    ("ours", "boots"),
    [
        ([Result({"reads": PASS, "exit status": FAIL, LOG: PASS}, Path("log"), died="The guest hung.")], 1),
        (
            [
                Result({"reads": FAIL, "exit status": PASS, LOG: PASS}, Path("log")),
                Result({"reads": PASS, "exit status": FAIL, LOG: PASS}, Path("log"), died="The guest hung."),
            ],
            2,
        ),
    ],
)
def test_a_guest_that_hangs_without_a_word_is_no_luck(ours: list[Result], boots: int) -> None:
    tried = []

    def run(kernel: BuiltKernel, boot: int) -> Result:
        tried.append(kernel.name)
        if kernel.name == "patched":
            return ours[boot - 1]
        return Result({"reads": PASS, "exit status": PASS, LOG: PASS}, Path("log"))

    found = compared([replace(KERNEL, name=name) for name in ("unpatched", "patched")], run)
    assert regressions(found) == ["exit status"]
    assert tried.count("patched") == boots


def test_luck_is_told_where_both_kernels_complain_as_well() -> None:
    def run(kernel: BuiltKernel, boot: int) -> Result:
        return Result({"reads": FAIL if (kernel.name, boot) == ("patched", 1) else PASS, LOG: FAIL}, Path("log"))

    found = compared([replace(KERNEL, name=name) for name in ("unpatched", "patched")], run)
    assert regressions(found) == []
    assert "- cow: reads (unpatched pass, patched pass in one boot of 2)" in markdown("Title", {"cow": found}, {})


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
    ours: dict[str, End], unpatched: list[dict[str, End]], worse: list[str]
) -> None:
    kernels = [replace(KERNEL, name=name) for name in ("unpatched", "patched")]
    boots = [{"reads": PASS, "exit status": PASS}, *unpatched]

    def run(kernel: BuiltKernel, boot: int) -> Result:
        return Result(ours if kernel.name == "patched" else boots[min(boot, len(boots)) - 1], Path("log"))

    assert regressions(compared(kernels, run)) == worse


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


@pytest.mark.parametrize(("died", "complaint"), [("The guest hung.", ""), ("", "BUG: KCSAN: data-race")])
def test_an_accident_is_told_with_its_log_also_of_one_kernel(
    died: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = died or complaint
    found = {"patched": Result({LOG: FAIL}, Path("place/fuzz.log"), died=died, complaint=complaint)}
    assert f"- fuzz (patched): {words}" in markdown("Title", {"fuzz": found}, {}).splitlines()
    print_results("Title", {"fuzz": found}, {})
    told = capsys.readouterr().out.splitlines()
    assert f"fuzz (patched): {words}" in told
    assert "logs: place/fuzz.log" in told


def test_a_later_boot_hides_no_accident_of_the_first_kernel() -> None:
    def run(kernel: BuiltKernel, boot: int) -> Result:
        ours = kernel.name == "patched"
        verdicts = {"reads": FAIL if ours else PASS, "exit status": PASS if ours or boot != 2 else FAIL, LOG: PASS}
        died = "" if ours or boot != 2 else "The guest hung."
        return Result(verdicts, Path(f"{kernel.name}-{boot}.log"), died=died)

    found = compared([replace(KERNEL, name=name) for name in ("unpatched", "patched")], run)
    assert (found["unpatched"].died, found["unpatched"].log) == ("The guest hung.", Path("unpatched-2.log"))

# SPDX-License-Identifier: GPL-2.0-only
import json
import re

import pytest

from foliolab.analyse.losses import Matrix
from foliolab.campaign.sample import Sample
from foliolab.errors import ChecksFailed
from foliolab.experiment.cell import Cell
from foliolab.report import losses
from foliolab.report.markdown import matrix_to_table, to_markdown
from foliolab.report.section import of_matrix
from foliolab.report.terminal import print_section
from tests.analyse.matrix import CELLS, boots, failed, matrix
from tests.printed import printed

MIB = 1 << 20
OFF = {"major_faults": 10_000, "contpte_share": 0.5, "read_bytes": 100 * MIB}
WORSE = {"major_faults": 13_300, "contpte_share": 0.5, "read_bytes": 50 * MIB}
BETTER = {"major_faults": 10_050, "contpte_share": 0.75, "read_bytes": 100 * MIB}


def compared(*more: Sample) -> Matrix:
    """Under adaptive, gcc gets worse and sqlite better; under published nothing changes but few events."""
    samples = [
        *boots("off", *[OFF] * 2),
        *boots("off", *[{**OFF, "major_faults": 10}] * 2, workload="sqlite"),
        *boots("published", *[OFF] * 2),
        *boots("published", *[{**OFF, "major_faults": 20}] * 2, workload="sqlite"),
        *boots("adaptive", *[WORSE] * 2),
        *boots("adaptive", *[{**BETTER, "major_faults": 0}] * 2, workload="sqlite"),
    ]
    return matrix(*samples, *more, cells=CELLS, variants=["published", "adaptive"])


def terminal(found: Matrix, width: int = 120, *, everything: bool = False, colour: bool = False) -> list[str]:
    return printed(
        lambda console: print_section(console, of_matrix(found, everything=everything)), width, colour=colour
    )


def cells(lines: list[str], *starts: str) -> list[str]:
    """The rows of these workloads, with one space between words."""
    return [" ".join(line.split()) for line in lines if line.startswith(starts) and ":" not in line]


def test_the_worst_comes_first_with_what_it_gains() -> None:
    lines = terminal(compared())
    assert lines[0] == "Workloads against off, scale quick, x86_64 with 4 KiB pages"
    assert " ".join(lines[2].split()) == "workload variant metric off value loss 95 % verdict but gains n"
    assert cells(lines, "gcc", "sqlite") == [
        "gcc adaptive major faults 10,000 13,300 +33.0 % exact worse read MiB -50.0 % 2",
        "sqlite published major faults 10 20 (+15.6 %) exact same 2",
        "gcc published read MiB 100.0 100.0 +0.0 % exact same 2",
        "sqlite adaptive contpte % 50.0 75.0 -50.0 % exact better 2",
    ]


def test_all_metrics() -> None:
    lines = terminal(compared(), everything=True)
    assert "but gains" not in lines[2]
    rows = cells(lines, "gcc", "sqlite")
    assert len(rows) == 2 * 2 * 3
    assert rows[0] == "gcc adaptive major faults 10,000 13,300 +33.0 % exact worse 2"
    assert "gcc adaptive read MiB 100.0 50.0 -50.0 % exact better 2" in rows[-2:]


def test_a_line_for_each_variant() -> None:
    lines = terminal(compared(), 200)
    assert "published: none of 2 workloads is shown to lose more than 2 %; none gains without a loss." in lines
    assert (
        "adaptive: 1 of 2 workloads is shown to lose more than 2 %, worst gcc (major faults +33.0 %); "
        "1 gains without a loss, most sqlite (contpte % -50.0 %)." in lines
    )


def test_losses_are_red_and_gains_green() -> None:
    rows = [line for line in terminal(compared(), colour=True) if "exact" in line and "exact:" not in line]
    styles = [("red" if "\x1b[31m" in line else "green" if "\x1b[32m" in line else "") for line in rows]
    assert styles[:4] == ["red", "", "", "green"]


def test_nothing_lost_is_said() -> None:
    found = matrix(*boots("off", OFF, OFF), *boots("adaptive", BETTER, BETTER))
    assert "Nothing that was compared gets worse." in terminal(found)
    assert "Nothing that was compared gets worse." not in terminal(compared())
    assert "Nothing that was compared gets worse." in to_markdown(of_matrix(found, everything=False))


def test_what_one_boot_does_not_show_is_said() -> None:
    """Nobody is to take it for a variant without a loss."""
    found = matrix(
        *boots("off", OFF), *boots("adaptive", BETTER), *boots("published", OFF), variants=["adaptive", "published"]
    )
    lines = terminal(found, 200)
    assert "Nothing that was compared is shown to get worse; 6 figures are not shown either way." in lines
    (line,) = (line for line in lines if line.startswith("adaptive: none of 1 workload is shown to lose more"))
    assert line.endswith("; none gains without a loss; 3 figures are not shown either way.")
    losses.check(found, ["adaptive"])


def test_nothing_to_compare_is_said() -> None:
    lines = terminal(matrix())
    assert "There is nothing to compare with off." in lines
    assert "adaptive: nothing to compare; 1 lacks measurements." in lines
    assert not any("loss" in line for line in lines)


def test_from_nothing() -> None:
    none, many = ([{"major_faults": faults}] * 2 for faults in (0, 6400))
    found = matrix(*boots("off", *none), *boots("adaptive", *many), threshold=0.005)
    lines = terminal(found)
    assert cells(lines, "gcc") == ["gcc adaptive major faults 0 6,400 from 0 exact worse 2"]
    assert "worst gcc (major faults from 0)" in " ".join(lines)
    assert "over 0.5 %" in " ".join(lines)
    (row, *_) = losses.to_json(found)["rows"]
    assert (row["baseline"], row["value"], row["loss"], row["change"]) == (0, 6400, 100, "worse")


def test_nothing_that_stays_nothing() -> None:
    found = matrix(*(each for name in ("off", "adaptive") for each in boots(name, *[{"major_faults": 0}] * 2)))
    assert cells(terminal(found), "gcc") == ["gcc adaptive major faults 0 0 +0.0 % exact same 2"]


def test_large_losses_have_no_digits_behind_the_point() -> None:
    found = matrix(*boots("off", {"major_faults": 100}), *boots("adaptive", {"major_faults": 1_234_567}))
    assert "+1,234,467 %" in " ".join(terminal(found))


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (110, "workload variant metric off value loss 95 % verdict but gains n"),
        (80, "workload variant metric off value loss 95 % verdict"),
        (60, "workload variant metric loss verdict"),
        (45, "workload variant metric loss"),
    ],
)
def test_narrow_terminals_lose_columns_and_no_row_wraps(width: int, titles: str) -> None:
    lines = terminal(compared(), width)
    assert max(map(len, lines)) <= width
    head = next(line for line in lines if line.startswith("workload "))
    assert head.split() == titles.split()
    rows = [
        line for line in lines if line.startswith(("gcc ", "sqlite ")) and re.search(" (adaptive|published) ", line)
    ]
    assert len(rows) == 4
    assert all("%" in row for row in rows)


def test_gaps_stand_together() -> None:
    crashes = [failed("adaptive", repetition=3), failed("adaptive", "sqlite", repetition=3)]
    lines = terminal(compared(*crashes, failed("published", outcome="not-applicable", repetition=3)))
    assert "adaptive: guest-crash: gcc, sqlite. Oops: int3." in lines
    assert "published: not-applicable: gcc. 'published' is for arm64-64k only." in lines
    everywhere = [failed(name, repetition=3) for name in ("off", "adaptive")]
    assert "off, adaptive: guest-crash: gcc. Oops: int3." in terminal(compared(*everywhere))
    assert any(line.endswith("2 lack measurements.") for line in lines)


def test_markdown() -> None:
    lines = to_markdown(of_matrix(compared(failed("published", repetition=3)), everything=False)).splitlines()
    assert lines[0] == "### Workloads against off, scale quick, x86_64 with 4 KiB pages"
    table = [line for line in lines if line.startswith("|")]
    assert table[0] == "| workload | variant | metric | off | value | loss | 95 % | verdict | but gains | n |"
    assert (
        table[2]
        == "| gcc | adaptive | major faults | 10,000 | 13,300 | +33.0 % | exact | worse | read MiB -50.0 % | 2 |"
    )
    assert len({line.count("|") for line in table}) == 1
    assert "- published: guest-crash: gcc. Oops: int3." in lines
    assert any(line.startswith("- adaptive: 1 of 2 workloads is shown to lose more than 2 %") for line in lines)


def test_seconds_of_an_emulation_are_said_to_be_such() -> None:
    assert any("say nothing about a real machine" in line for line in losses.remarks(compared()))


def test_rows_for_programs() -> None:
    document = losses.to_json(compared(failed("adaptive", "sqlite", repetition=3)))
    rows = json.loads(json.dumps(document, allow_nan=False))["rows"]
    assert [(each["variant"], each["loss"]) for each in document["again"]] == [("off again", 0)] * 6
    assert rows[0] == {
        "workload": "gcc",
        "variant": "adaptive",
        "experiment": "programs",
        "cell": {"workload": "gcc"},
        "scale": "quick",
        "arch": "x86_64",
        "page_size": 4096,
        "backend": "qemu-tcg",
        "metric": "major_faults",
        "baseline": 10_000,
        "value": 13_300,
        "loss": pytest.approx(0.33),
        "mean": pytest.approx(0.33),
        "interval": [pytest.approx(0.33)] * 2,
        "negligible": pytest.approx(0.0064),
        "p": None,
        "p_corrected": None,
        "smallest_visible": 0,
        "repeats": True,
        "change": "worse",
        "n": 2,
        "outcome": "ok",
        "sentence": "",
    }
    assert len(rows) == 2 * 2 * 3 + 1
    assert rows[-1] == {
        **rows[0],
        "workload": "sqlite",
        "cell": {"workload": "sqlite"},
        **dict.fromkeys(
            ("metric", "baseline", "value", "loss", "mean", "interval", "p", "p_corrected", "smallest_visible")
        ),
        **dict.fromkeys(("negligible", "repeats", "change")),
        "n": 0,
        "outcome": "guest-crash",
        "sentence": "Oops: int3.",
    }


def varying(baseline: list[int], again: list[int], adaptive: list[int]) -> Matrix:
    """Boots of gcc with these major faults."""
    arms = {"off": baseline, "off again": again, "adaptive": adaptive}
    samples = [boots(name, *({"major_faults": faults} for faults in arm)) for name, arm in arms.items()]
    return matrix(*(each for some in samples for each in some), metrics=["major_faults"], repeats=False)


def test_what_varies_has_an_interval_and_what_is_the_same_what_would_have_been_seen() -> None:
    off = [10_000] * 6
    worse = varying(off, [*off[:5], 10_001], [11_000, 11_100, 11_200, 11_300, 11_400, 11_500])
    assert cells(terminal(worse), "gcc") == ["gcc adaptive major faults 10,000 11,250 +12.5 % +10.0 to +15.0 worse 6"]
    same = varying(off, [*off[:5], 10_001], [10_050, 9_950, 10_020, 10_010, 9_960, 10_000])
    (row,) = cells(terminal(same), "gcc")
    assert row.endswith("+0.0 % -0.5 to +0.5 same to 0.5 % 6")
    few = varying([10_000], [10_001], [11_000])
    assert cells(terminal(few), "gcc") == ["gcc adaptive major faults 10,000 11,000 (+10.0 %) - suspected 1"]


@pytest.mark.parametrize(
    ("again", "line"),
    [
        ([], "A/A: there is no second arm of off: nothing says what chance does here."),
        ([1000], "A/A: off measured twice: of 1 figures 1 repeat exactly."),
        ([1001], "A/A: off measured twice: of 1 figures 0 repeat exactly; too few boots to tell others."),
        ([1000, 1000, 1000, 1000, 1000, 1001], "0 repeat exactly, 0 of 1 others (0.0 %) differ at 5 % each, none"),
        ([1001, 1002, 1003, 1004, 1005, 1006], "0 repeat exactly, 1 of 1 others (100.0 %) differ at 5 % each, 1 after"),
    ],
)
def test_what_chance_does_is_said(again: list[int], line: str) -> None:
    off = [1000] * max(len(again), 1)
    assert line in " ".join(terminal(varying(off, again, off), 200))


def test_what_too_few_boots_tell_of_has_no_part_in_what_chance_does() -> None:
    many = [{"major_faults": 1000 + number} for number in range(7)]
    samples = [
        *boots("off", *many[:6]),
        *boots("off again", *many[1:]),
        *boots("off", many[0], workload="sqlite"),
        *boots("off again", many[1], workload="sqlite"),
    ]
    found = losses.again_line(matrix(*samples, cells=CELLS, metrics=["major_faults"], repeats=False))
    assert found.endswith(
        "of 2 figures 0 repeat exactly, 1 of 1 others (100.0 %) differ at 5 % each, none after correction;"
        " too few boots to tell others."
    )


def test_check_fails_for_what_is_suspected_and_says_what_would_tell() -> None:
    with pytest.raises(
        ChecksFailed, match=r"none of 1 workload is shown to lose .*; 1 may, worst gcc .* --repetitions 6 can tell"
    ):
        losses.check(varying([1000] * 3, [1001] * 3, [1100, 1101, 1102]), ["adaptive"])
    six = [1100, 1101, 1102, 1103, 1104, 1105]
    with pytest.raises(ChecksFailed, match=r"^adaptive: 1 of 1 workload is shown to lose"):
        losses.check(varying([1000] * 6, [1001] * 6, six), ["adaptive"])
    losses.check(varying([1000] * 6, [1001] * 6, [*six[:5], 990]), ["adaptive"])
    losses.check(varying([1000] * 3, [1001] * 3, [900, 901, 902]), ["adaptive"])


def test_check_proposes_no_more_boots_than_there_are() -> None:
    """Twelve can show any of sixty figures, if all of them lose; here eleven do."""
    off = [{"major_faults": 10_000.0}] * 12
    samples = []
    names = [str(number) for number in range(60)]
    for name in names:
        loses = [9_990.0, *(15_000.0 + number for number in range(11))]
        adaptive = loses if name == "7" else [10_000.0 + 10 * (-1) ** number for number in range(12)]
        samples += [*boots("off", *off, workload=name)]
        samples += [*boots("adaptive", *({"major_faults": each} for each in adaptive), workload=name)]
    cells = [Cell.of({"workload": name}) for name in names]
    found = matrix(*samples, cells=cells, metrics=["major_faults"], repeats=False)
    assert found.boots_needed == 12
    with pytest.raises(ChecksFailed, match=r"1 may, worst 7 \(.*\); .* More --repetitions can tell what may lose\.$"):
        losses.check(found, ["adaptive"])


def test_check_is_about_the_variants_that_it_is_given() -> None:
    losses.check(compared(), ["published"])
    with pytest.raises(
        ChecksFailed, match=r"^adaptive: 1 of 2 workloads is shown to lose more than 2 %, worst gcc \(.*\); 1 gains"
    ):
        losses.check(compared(), ["published", "adaptive"])


@pytest.mark.parametrize("who", ["published", "off"])
def test_check_fails_for_what_could_not_be_measured(who: str) -> None:
    with pytest.raises(ChecksFailed, match=r"^published: none of 2 .*; 1 lacks measurements\.$"):
        losses.check(compared(failed(who, repetition=3)), ["published"])


def test_check_passes_over_what_the_machine_cannot_have() -> None:
    losses.check(compared(failed("published", outcome="not-applicable", repetition=3)), ["published"])


def test_a_check_of_nothing_fails() -> None:
    with pytest.raises(ChecksFailed, match=r"^address: nothing could be compared with off\.$"):
        losses.check(compared(), ["address"])


def test_a_table_for_a_document_has_what_decides_and_what_made_it() -> None:
    *table, empty, interval, same, about, again = matrix_to_table(
        compared(), lambda group, shown: f"./lab {group.experiment} {len(set(shown))}"
    ).splitlines()
    assert table[0] == "| workload | variant | metric | off | value | loss | 95 % | verdict | but gains |"
    assert len(table) == 6
    assert not empty
    assert "exact: it repeats exactly" in interval
    assert interval.endswith("over the 0 figures that do not (Benjamini-Hochberg).")
    assert same == "Same to x: the interval ends no farther than x from the loss."
    assert re.fullmatch(r"n = 2, qemu-tcg, x86_64-4k, scale quick, patched `\w+`: `\./lab programs 6`\.", about)
    assert again == "A/A: off measured twice: of 6 figures 6 repeat exactly."

# SPDX-License-Identifier: GPL-2.0-only
import io
import json

import pytest
from rich.console import Console

from foliolab.analyse.losses import Matrix
from foliolab.campaign.sample import Sample
from foliolab.errors import ChecksFailed
from foliolab.report import losses
from foliolab.report.markdown import matrix_to_markdown
from foliolab.report.terminal import print_matrix
from tests.analyse.matrix import CELLS, boots, failed, matrix

MIB = 1 << 20
STOCK = {"major_faults": 10_000, "contpte_share": 0.5, "read_bytes": 100 * MIB}
WORSE = {"major_faults": 13_300, "contpte_share": 0.5, "read_bytes": 50 * MIB}
BETTER = {"major_faults": 10_050, "contpte_share": 0.75, "read_bytes": 100 * MIB}


def compared(*more: Sample) -> Matrix:
    """Under folio, gcc gets worse and sqlite better; under series nothing changes but few events."""
    samples = [
        *boots("stock", STOCK),
        *boots("stock", {**STOCK, "major_faults": 10}, workload="sqlite"),
        *boots("series", STOCK),
        *boots("series", {**STOCK, "major_faults": 20}, workload="sqlite"),
        *boots("folio", WORSE),
        *boots("folio", {**BETTER, "major_faults": 0}, workload="sqlite"),
    ]
    return matrix(*samples, *more, cells=CELLS, variants=["series", "folio"])


def printed(found: Matrix, width: int = 120, *, everything: bool = False, colour: bool = False) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, force_terminal=colour)
    print_matrix(console, found, everything=everything)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def cells(lines: list[str], *starts: str) -> list[list[str]]:
    return [line.split() for line in lines if line.startswith(starts) and ":" not in line]


def test_the_worst_comes_first_with_what_it_gains() -> None:
    lines = printed(compared())
    assert lines[0] == "Workloads against stock, scale quick, x86_64 with 4 KiB pages"
    assert lines[2].split() == ["workload", "variant", "metric", "stock", "value", "loss", "but", "gains", "n"]
    assert cells(lines, "gcc", "sqlite") == [
        ["gcc", "folio", "major", "faults", "10,000", "13,300", "+33.0", "%", "read", "MiB", "-50.0", "%", "1"],
        ["sqlite", "series", "major", "faults", "10", "20", "(+15.6", "%)", "1"],
        ["gcc", "series", "major", "faults", "10,000", "10,000", "+0.0", "%", "1"],
        ["sqlite", "folio", "contpte", "%", "50.0", "75.0", "-50.0", "%", "1"],
    ]


def test_all_metrics() -> None:
    lines = printed(compared(), everything=True)
    assert "but gains" not in lines[2]
    rows = cells(lines, "gcc", "sqlite")
    assert len(rows) == 2 * 2 * 3
    assert rows[0] == ["gcc", "folio", "major", "faults", "10,000", "13,300", "+33.0", "%", "1"]
    assert ["gcc", "folio", "read", "MiB", "100.0", "50.0", "-50.0", "%", "1"] in rows[-2:]


def test_a_line_for_each_variant() -> None:
    lines = printed(compared(), 200)
    assert "series: none of 2 workloads loses more than 2 %; none gains without a loss." in lines
    assert (
        "folio: 1 of 2 workloads loses more than 2 %, worst gcc (major faults +33.0 %); "
        "1 gains without a loss, most sqlite (contpte % -50.0 %)." in lines
    )


def test_losses_are_red_and_gains_green() -> None:
    rows = [line for line in printed(compared(), colour=True) if "%" in line and "more than" not in line]
    styles = [("red" if "\x1b[31m" in line else "green" if "\x1b[32m" in line else "") for line in rows]
    assert styles[:4] == ["red", "", "", "green"]


def test_nothing_lost_is_said() -> None:
    found = matrix(*boots("stock", STOCK), *boots("folio", BETTER))
    assert "Nothing that was compared gets worse." in printed(found)
    assert "Nothing that was compared gets worse." not in printed(compared())
    assert "Nothing that was compared gets worse." in matrix_to_markdown(found, everything=False)


def test_nothing_to_compare_is_said() -> None:
    lines = printed(matrix())
    assert "There is nothing to compare with stock." in lines
    assert "folio: nothing to compare; 1 lacks measurements." in lines
    assert not any("loss" in line for line in lines)


def test_from_nothing() -> None:
    found = matrix(*boots("stock", {"major_faults": 0}), *boots("folio", {"major_faults": 6400}), threshold=0.005)
    lines = printed(found)
    assert cells(lines, "gcc") == [["gcc", "folio", "major", "faults", "0", "6,400", "from", "0", "1"]]
    assert "worst gcc (major faults from 0)" in " ".join(lines)
    assert "over 0.5 %" in " ".join(lines)
    (row, *_) = losses.to_json(found)
    assert (row["baseline"], row["value"], row["loss"], row["change"]) == (0, 6400, 100, "worse")


def test_nothing_that_stays_nothing() -> None:
    found = matrix(*boots("stock", {"major_faults": 0}), *boots("folio", {"major_faults": 0}))
    assert cells(printed(found), "gcc") == [["gcc", "folio", "major", "faults", "0", "0", "+0.0", "%", "1"]]


def test_large_losses_have_no_digits_behind_the_point() -> None:
    found = matrix(*boots("stock", {"major_faults": 100}), *boots("folio", {"major_faults": 1_234_567}))
    assert "+1,234,467 %" in " ".join(printed(found))


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (80, "workload variant metric stock value loss but gains"),
        (60, "workload variant metric stock value loss"),
        (45, "workload variant metric loss"),
    ],
)
def test_narrow_terminals_lose_columns_and_no_row_wraps(width: int, titles: str) -> None:
    lines = printed(compared(), width)
    assert max(map(len, lines)) <= width
    head = next(line for line in lines if line.startswith("workload "))
    assert head.split() == titles.split()
    rows = [line for line in lines if line.startswith(("gcc ", "sqlite "))]
    assert len(rows) == 4
    assert all("%" in row for row in rows)


def test_gaps_stand_together() -> None:
    crashes = [failed("folio", repetition=2), failed("folio", "sqlite", repetition=2)]
    lines = printed(compared(*crashes, failed("series", outcome="not-applicable", repetition=2)))
    assert "folio: guest-crash: gcc, sqlite. Oops: int3." in lines
    assert "series: not-applicable: gcc. 'series' is for arm64-64k only." in lines
    everywhere = [failed(name, repetition=2) for name in ("stock", "folio")]
    assert "stock, folio: guest-crash: gcc. Oops: int3." in printed(compared(*everywhere))
    assert any(line.endswith("2 lack measurements.") for line in lines)


def test_markdown() -> None:
    lines = matrix_to_markdown(compared(failed("series", repetition=2)), everything=False).splitlines()
    assert lines[0] == "### Workloads against stock, scale quick, x86_64 with 4 KiB pages"
    table = [line for line in lines if line.startswith("|")]
    assert table[0] == "| workload | variant | metric | stock | value | loss | but gains | n |"
    assert table[2] == "| gcc | folio | major faults | 10,000 | 13,300 | +33.0 % | read MiB -50.0 % | 1 |"
    assert len({line.count("|") for line in table}) == 1
    assert "- series: guest-crash: gcc. Oops: int3." in lines
    assert any(line.startswith("- folio: 1 of 2 workloads loses more than 2 %") for line in lines)


def test_seconds_of_an_emulation_are_said_to_be_such() -> None:
    assert any("say nothing about a real machine" in line for line in losses.remarks(compared()))


def test_rows_for_programs() -> None:
    rows = losses.to_json(compared(failed("folio", "sqlite", repetition=2)))
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert rows[0] == {
        "workload": "gcc",
        "variant": "folio",
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
        "change": "worse",
        "n": 1,
        "agreeing": 1,
        "outcome": "ok",
        "sentence": "",
    }
    assert len(rows) == 2 * 2 * 3 + 1
    assert rows[-1] == {
        **rows[0],
        "workload": "sqlite",
        "cell": {"workload": "sqlite"},
        **dict.fromkeys(("metric", "baseline", "value", "loss", "change")),
        "n": 0,
        "agreeing": 0,
        "outcome": "guest-crash",
        "sentence": "Oops: int3.",
    }


def test_check_is_about_the_variants_that_it_is_given() -> None:
    losses.check(compared(), ["series"])
    with pytest.raises(ChecksFailed, match=r"^folio: 1 of 2 workloads loses more than 2 %, worst gcc \(.*\); 1 gains"):
        losses.check(compared(), ["series", "folio"])


@pytest.mark.parametrize("who", ["series", "stock"])
def test_check_fails_for_what_could_not_be_measured(who: str) -> None:
    with pytest.raises(ChecksFailed, match=r"^series: none of 2 .*; 1 lacks measurements\.$"):
        losses.check(compared(failed(who, repetition=2)), ["series"])


def test_check_passes_over_what_the_machine_cannot_have() -> None:
    losses.check(compared(failed("series", outcome="not-applicable", repetition=2)), ["series"])


def test_a_check_of_nothing_fails() -> None:
    with pytest.raises(ChecksFailed, match=r"^address: nothing could be compared with stock\.$"):
        losses.check(compared(), ["address"])

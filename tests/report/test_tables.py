# SPDX-License-Identifier: GPL-2.0-only
import re
from dataclasses import replace

import pytest

from foliolab.errors import ChecksFailed, UsageError
from foliolab.experiment.metrics import METRICS
from foliolab.report.columns import Shown, change, rate, scale_factor, times
from foliolab.report.expected import check, missed_columns
from foliolab.report.markdown import document_table, to_markdown, to_table, variants_to_table
from foliolab.report.section import of_view, row_style
from foliolab.report.view import View
from tests.report.shown import GIB, MODEST, STRIDE, measured, terminal, view
from tests.samples import sample


def test_the_table_at_120_columns() -> None:
    lines = terminal(120)
    assert lines[0] == "sparse-mmap, scale quick, x86_64 with 4 KiB pages, backend qemu-tcg"
    table = [re.sub(r"  +", " | ", line.strip()) for line in lines[2:12]]
    assert table == [
        "read | min to max | times | against | published | read | major | emulated",
        "cell | variant | GiB | GiB | floor | unpatched | GiB x 1/8 | requests | faults | seconds | n",
        table[2],
        "random | unpatched | 29.500 | 29.000 to 30.000 | 1,888 | 27.922 | 32,768 | 4,000 | 12.500 | 2",
        "off | 30.000 | 29.500 to 30.500 | 1,920 | +1.69 % | 27.922 | 32,768 | 4,000 | 12.500 | 2",
        "published | 1.250 | identical | 80 | 23.6x less | 0.126 | 32,768 | 4,000 | 12.500 | 2",
        "",
        "stride 2053 | unpatched | 51.198 | identical | 3,277 | 51.198 | 32,768 | 4,000 | 12.500 | 2",
        "off | 51.198 | identical | 3,277 | same | 51.198 | 32,768 | 4,000 | 12.500 | 2",
        "published | guest-crash | 0.121 | 0",
    ]


def test_what_is_half_or_less_is_green_even_if_it_is_nothing() -> None:
    def style(ratio: float | None, metric: str) -> str:
        return row_style(replace(view().rows[0], ratio=ratio), METRICS[metric])

    ratios = (None, 0, 0.5, 1, 2)
    assert [style(ratio, "read_bytes") for ratio in ratios] == ["", "bold green", "bold green", "", ""]
    assert [style(ratio, "contpte_share") for ratio in ratios] == ["", "", "", "", "bold green"]


def test_narrow_terminals_lose_the_least_important_columns_and_no_row_wraps() -> None:
    for width, gone in ((100, ["emulated", "min to max"]), (80, ["emulated", "min to max", "requests"])):
        lines = terminal(width)
        head = " ".join(lines[2:5])
        assert all(title not in head for title in gone)
        assert "published" in head
        assert all(len(line) <= width for line in lines)
        assert sum(line.startswith(("random ", "stride 2053 ")) for line in lines) >= 2
        assert "30.000" in next(line for line in lines if " off " in line)


def test_where_boots_are_not_as_many_it_is_said_which_are_set_against_each_other() -> None:
    words = "what is set against another is so in the repetitions that both have"
    some = measured()
    assert not any(words in remark for remark in view(*some).remarks())
    assert any(words in remark for remark in view(*some[1:]).remarks())


def test_remarks_name_backend_kernels_and_failures() -> None:
    text = "\n".join(terminal(120))
    assert "the seconds say nothing about a real machine" in text
    assert "unpatched 6.12.1-foliolab (k-unpatched); patched 6.12.1-foliolab (k-patched)" in text
    assert "stride 2053, published, repetition 1: guest-crash. Oops: int3." in text


def test_verdicts_stand_below() -> None:
    lines = terminal(120)
    assert "ok   off equals unpatched: random, within 2 %" in lines
    assert "ok   off equals unpatched: strides, exactly (2 of 6 measured)" in lines
    assert "-    the retry rule alone does not help random" in lines
    place = lines.index("FAIL published reads at least 15 times less: stride 2053")
    assert lines[place + 1].strip() == (
        "stride 2053, published, read_bytes over unpatched: published ended as guest-crash, expected at most 0.0666"
    )


def test_seconds_of_a_real_machine_stand_beside_the_published_ones_at_full_scale() -> None:
    shown = view(sample(backend="qemu-kvm", scale="full", metrics={**MODEST, "read_bytes": 223 * GIB}))
    text = "\n".join(terminal(140, shown))
    assert "emulated" not in text
    assert "Emulated" not in text
    assert "101.293" in text


def test_instructions_are_shown_where_they_were_counted() -> None:
    metrics = {**MODEST, "read_bytes": GIB, "instructions": 12_500_000}
    text = "\n".join(terminal(140, view(sample(backend="qemu-icount", metrics=metrics))))
    assert "instructions" in text
    assert "12.5" in text


def test_older_samples_are_mentioned() -> None:
    text = "\n".join(terminal(120, view(sample(GIB, kernel="old"), sample(GIB, kernel="new"))))
    assert "Left out: 1 samples of older kernels" in text


def test_markdown() -> None:
    lines = to_markdown(of_view(view())).splitlines()
    assert lines[0] == "### sparse-mmap, scale quick, x86_64 with 4 KiB pages, backend qemu-tcg"
    table = [line for line in lines if line.startswith("|")]
    assert table[0].startswith("| cell | variant | read GiB | min to max GiB | times floor | against unpatched |")
    assert len({line.count("|") for line in table}) == 1
    assert "| random | unpatched | 29.500 | 29.000 to 30.000 | 1,888 |  | 27.922 |" in table[2]
    assert "- holds: off equals unpatched: random, within 2 %" in lines
    assert "- **fails**: published reads at least 15 times less: stride 2053" in lines


def test_a_table_for_a_document_has_what_decides_and_what_made_it() -> None:
    *table, empty, about = to_table(view(), made_by=lambda group, shown: f"./lab {len(list(shown))}").splitlines()
    assert table[0].startswith("| cell | variant | read GiB | times floor | against unpatched | published GiB x 1/8 |")
    assert "min to max" not in table[0]
    assert len({line.count("|") for line in table}) == 1
    assert not empty
    assert about.startswith("n = ")
    assert "unpatched `" in about
    assert f": `./lab {len(table) - 2}`." in about
    assert re.search(r"`\w+`\.\n$", to_table(view(sample(7))))
    assert to_table(view(sample(7), sample(7, repetition=2))).endswith("Boots of a row repeat exactly.\n")
    boots = [sample(bytes_read, repetition=n) for n, bytes_read in enumerate((100, 100, 200), 1)]
    others = [sample(8, variant="published"), sample(8, variant="published", repetition=2)]
    assert to_table(view(*boots, *others)).endswith("Boots of a row differ by up to 100 %, by 50 % in the median.\n")
    far = [sample(bytes_read, repetition=n) for n, bytes_read in enumerate((100, 100, 2700), 1)]
    assert "Boots of a row differ by up to 26 times their median, by " in to_table(view(*far, *others))
    some = [sample(bytes_read, repetition=n) for n, bytes_read in enumerate((0, 0, 200), 1)]
    assert to_table(view(*some, *others)).endswith("`. Where a median is 0, not all boots have 0.\n")


KERNELS = {"Linux 6.12": Shown("unpatched"), "Linux 7.3": Shown("debian:7.3"), "ours": Shown("published")}
"""Heads of columns, and their variants."""


def of_three_kernels() -> View:
    newer = sample(
        variant="debian:7.3", named="debian:7.3", kernel="k7", cell=STRIDE, metrics={**MODEST, "read_bytes": GIB}
    )
    return view(*measured(), newer)


def test_kernels_stand_beside_each_other() -> None:
    found = of_three_kernels()
    *table, empty, about = variants_to_table(found, KERNELS).splitlines()
    assert table == [
        "| read GiB | Linux 6.12 | Linux 7.3 | ours |",
        "| --- | ---: | ---: | ---: |",
        "| random | 29.500 | not measured | 1.250 |",
        "| stride 2053 | 51.198 | 1.000 | guest-crash |",
    ]
    assert not empty
    about, _, apart = about.partition(" Boots of a row ")
    assert apart == "differ by up to 3.4 %, by 0 % in the median."
    assert about.startswith("n = 1 to 2, qemu-tcg, x86_64-4k, scale quick, ")


def test_rows_beside_each_other_may_be_of_several_metrics() -> None:
    found = of_three_kernels()
    *table, _, about = variants_to_table(found, KERNELS, ["major_faults", "read_bytes"]).splitlines()
    assert about.endswith("Boots of a row differ by up to 3.4 %, by 0 % in the median.")
    assert table == [
        "| cell | figure | Linux 6.12 | Linux 7.3 | ours |",
        "| --- | --- | ---: | ---: | ---: |",
        "| random | major faults | 4,000 | not measured | 4,000 |",
        "|  | read GiB | 29.500 | not measured | 1.250 |",
        "| stride 2053 | major faults | 4,000 | 4,000 | guest-crash |",
        "|  | read GiB | 51.198 | 1.000 | guest-crash |",
    ]


def test_what_stands_below_columns_is_about_the_rows_and_metrics_that_they_show() -> None:
    found = of_three_kernels()
    *_, about = variants_to_table(found, KERNELS, ["major_faults"]).splitlines()
    assert about.endswith("Boots of a row repeat exactly.")
    newer = {"Linux 7.3": Shown("debian:7.3")}
    *_, about = variants_to_table(found, newer, made_by=lambda group, shown: f"./lab {len(list(shown))}").splitlines()
    assert about.startswith("n = 1, ")
    assert about.endswith(": `./lab 1`.")


def test_a_column_can_be_of_some_cells_and_then_no_row_tells_their_axes() -> None:
    axes = {"store": "lmdb", "workload": "uniform", "times": 2}
    settings = [("debian", 128, "none", 3), ("debian", 16, "none", 2), ("debian", 128, "own", 1)]
    samples = [
        sample(variant=variant, cell={**axes, "read_ahead_kb": window, "hint": hint}, metrics={"read_bytes": n * GIB})
        for variant, window, hint, n in settings
    ]
    found = view(*samples)
    heads = {
        "as it is": Shown("debian", "read_ahead_kb=128,hint=none"),
        "16 KiB": Shown("debian", "read_ahead_kb=16"),
        "hint": Shown("debian", "hint=own"),
        "module": Shown("module", "read_ahead_kb=128,hint=none"),
    }
    title, _, row, *_ = variants_to_table(found, heads).splitlines()
    assert title == "| read GiB | as it is | 16 KiB | hint | module |"
    assert row == "| lmdb, workload uniform, times 2 | 3.000 | 2.000 | 1.000 | not measured |"
    with pytest.raises(UsageError, match=r"debian has several figures for a cell: say which by hint, read_ahead_kb\."):
        variants_to_table(found, {**heads, "any": Shown("debian", "read_ahead_kb=128")})


def test_rows_for_programs() -> None:
    rows = view().to_json()
    assert rows[1]["variant"] == "off"
    assert rows[1]["metrics"]["read_bytes"] == {"median": 30 * GIB, "least": 29.5 * GIB, "most": 30.5 * GIB}
    assert (rows[1]["n"], rows[1]["ratio_to"], rows[1]["kernel"]["hash"]) == (2, "unpatched", "k-patched")
    assert rows[-1]["failures"] == {"guest-crash": 1}


def test_check_names_the_first_failure() -> None:
    with pytest.raises(ChecksFailed, match=r"^1 of \d+ checks fail; the first: published reads at least"):
        check(view().verdicts)
    check(view(sample(30 * GIB), sample(30 * GIB, variant="unpatched", named="unpatched", kernel="k0")).verdicts)


def test_aims_that_are_missed_are_a_table_of_what_fails_alone() -> None:
    head, _, *rows = document_table(missed_columns([view()])).splitlines()
    assert head == "| aim | cell | where | metric | found | aimed at |"
    crashed = "read_bytes over unpatched | published ended as guest-crash | at most 0.0666"
    where = "stride 2053 | published, x86_64-4k"
    assert rows == [f"| published reads at least 15 times less: stride 2053 | {where} | {crashed} |"]


def test_a_check_of_nothing_fails() -> None:
    with pytest.raises(ChecksFailed, match="No expectation could be checked"):
        check([])


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(0.04, "25.0x less"), (0.0, "nothing"), (1.0, "same"), (1.013, "+1.30 %"), (0.98, "-2.00 %"), (3.0, "3.0x more")],
)
def test_changes_in_words(ratio: float, words: str) -> None:
    assert change(ratio) == words


@pytest.mark.parametrize(("factor", "words"), [(0.25, "0.2"), (9.94, "9.9"), (10, "10"), (1888.4, "1,888")])
def test_multiples_have_a_digit_behind_the_point_below_ten(factor: float, words: str) -> None:
    assert times(factor) == words


@pytest.mark.parametrize(("factor", "words"), [(0.125, "1/8"), (1.0, "1"), (0.0375, "0.0375")])
def test_factors_in_words(factor: float, words: str) -> None:
    assert scale_factor(factor) == words


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0.00"), (0.0078125, "0.0078"), (0.1, "0.10"), (142.068, "142.07"), (4096, "4,096.00")]
)
def test_rates_have_digits_that_say_something(number: float, text: str) -> None:
    assert rate(number) == text

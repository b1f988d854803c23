# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Sequence

import pytest

from foliolab.report.markdown import document_table, regret_to_table
from foliolab.report.simulate import ablation_columns, does_column, print_regret
from foliolab.simulate.ablation import JUDGED, WHOLE, Ablation
from foliolab.simulate.rows import RegretRow
from foliolab.simulate.suite import FAMILIES, PATTERNS, REPORTS, TRACES
from foliolab.simulate.summary import Regrets, summary_to_json
from tests.printed import printed
from tests.simulate.small import SMALL, row


def terminal(rows: Sequence[RegretRow], width: int = 120) -> list[str]:
    return printed(lambda console: print_regret(console, rows), width)


def three(
    pattern: str, off: float, adaptive: float, *, judged_only: bool = False, device: str = "fast", family: str = ""
) -> list[RegretRow]:
    regrets = {"off": off, "published": 2, "adaptive": adaptive}
    return [
        row(variant, regret, pattern, off=off, device=device, judged_only=judged_only, family=family)
        for variant, regret in regrets.items()
    ]


ROWS = [
    *three("lost", 1, 1.1),
    *three("kept", 50, 1.25, judged_only=True),
    *three("bad", 1, 1.6),
    *three("bad", 1, 1.75, device="slow"),
]


def line(lines: Sequence[str], start: str) -> str:
    return next(found for found in lines if found.startswith(start))


def test_variants_and_patterns() -> None:
    lines = terminal(ROWS)
    assert lines[0] == "Regret by variant, 4 cells"
    assert " ".join(lines[1:3]) == (
        "Price in multiples of the cheapest fixed window up to read_ahead_kb: worst, geometric mean. "
        "Time in multiples of the fastest: mean."
    )
    assert lines[lines.index("Regret by pattern") + 1].startswith("* is judged only. ")
    assert line(lines, "adaptive ").split() == ["adaptive", "1.75", "1.401", "1.401", "1.25", "1.250", "1.250"]
    assert line(lines, "bad").split() == [
        "bad", "2", "1.00", "1.000", "1.000", "2.00", "2.000", "2.000", "1.75", "1.673", "1.673", "32", "x0.5", "128",
        "slow",
    ]  # fmt: skip
    assert line(lines, "kept").startswith("kept *")
    assert [found.split()[0] for found in lines if "x0.5" in found] == ["bad", "kept", "lost"]


def test_cells_that_miss_a_bound_are_counted() -> None:
    lines = terminal(ROWS)
    over = lines.index("adaptive over 1.5: 2 cells")
    assert lines[over + 1 : over + 3] == ["    2  bad", ""]
    lost = lines.index("off up to 1.1 and adaptive more than 5% above it: 3 cells")
    assert lines[lost + 1 : lost + 4] == ["    2  bad", "    1  lost", ""]


def test_nothing_is_missed_and_nothing_judged() -> None:
    lines = terminal(three("good", 1, 1))
    assert line(lines, "adaptive ").split() == ["adaptive", "1.00", "1.000", "1.000", "-", "-", "-"]
    assert "adaptive over 1.5: 0 cells" in lines
    assert lines[-2:] == ["off up to 1.1 and adaptive more than 5% above it: 0 cells", ""]


def test_a_narrow_terminal_leaves_columns_out() -> None:
    lines = terminal(ROWS, width=60)
    assert max(map(len, lines)) <= 60
    assert line(lines, "bad").split() == ["bad", "1.00", "2.00", "1.75", "1.673", "x0.5", "128", "slow"]


FAST_AND_SLOW = {"off": (4, 3), "published": (2, 2), "adaptive": (1.5, 0.5)}
"""Time on each."""
TIMED = [
    *(row(name, 2, time=fast) for name, (fast, _) in FAST_AND_SLOW.items()),
    *(row(name, 1, device="slow", judged_only=True, time=slow) for name, (_, slow) in FAST_AND_SLOW.items()),
]


def test_time_stands_beside_price_by_device() -> None:
    lines = terminal([*TIMED, *three("trace:lmdb", 1, 1.75)])
    assert line(lines, "adaptive ").split() == ["adaptive", "2.00", "1.414", "0.866", "1.00", "1.000", "0.500"]
    everything = lines[lines.index("Regret by device, all") :]
    assert [word for found in everything[2:4] for word in found.split()] == [
        "fast", "slow", "variant", "time", "price", "time", "price",
    ]  # fmt: skip
    assert line(everything, "off").split() == ["off", "4.000", "2.000", "3.000", "1.000"]
    judged = lines[lines.index("Regret by device, judged") :]
    assert line(judged, "off").split() == ["off", "3.000", "1.000"]
    assert "Regret by device in traces, all" in lines
    assert "Regret by device in traces, judged" not in lines


def test_time_is_in_json_for_programs() -> None:
    off, _, adaptive = summary_to_json(TIMED)
    assert (off["time_mean"], off["time_worst"], off["time_judged_mean"]) == pytest.approx((12**0.5, 4, 3))
    assert adaptive["devices"]["fast"] == {
        "mean": 2, "worst": 2, "judged_mean": None, "time_mean": 1.5, "time_worst": 1.5, "time_judged_mean": None,
    }  # fmt: skip
    assert set(adaptive["devices"]) == {"fast", "slow"}


def test_a_document_has_time_by_device() -> None:
    variants = [way.name for way in SMALL.ways]
    rows = [
        row(variant, 2, pattern, device=device, time=3, judged_only=judged)
        for variant in variants
        for pattern, judged in (("a", False), ("b", True), ("trace:t", False))
        for device in ("fast", "slow")
    ]
    rows += [row(variant, 2, "c", family="f", time=3) for variant in variants]
    lines = regret_to_table(SMALL, rows).splitlines()
    assert [found for found in lines if found.startswith("By device")] == [
        "By device, patterns, all:", "By device, patterns, judged:", "By device, families, all:",
        "By device, traces, all:",
    ]  # fmt: skip
    table = lines[lines.index("By device, traces, all:") + 2 :]
    assert table[0] == "| variant | fast time | price | slow time | price |"
    assert table[2] == "| off | 3.000 | 2.000 | 3.000 | 2.000 |"
    assert len(table) == 2 + len(variants)


def test_new_families_have_tables_of_their_own() -> None:
    lines = terminal(
        [*three("good", 1, 1), *three("walk", 1, 1.75, judged_only=True, family="walks"), *three("trace:lmdb", 1, 3)]
    )
    titles = [found for found in lines if found.startswith("Regret by variant")]
    assert titles == [f"Regret by variant{where}, 1 cells" for where in ("", " in new families", " in traces")]
    assert "adaptive over 1.5: 0 cells" in lines
    families = lines[lines.index(titles[1]) : lines.index(titles[2])]
    assert line(families, "adaptive ").split() == ["adaptive", "1.75", *["1.750"] * 2, "1.75", *["1.750"] * 2]
    assert families[families.index("adaptive over 1.5 in new families: 1 cells") + 1] == "    1  walk"


def test_traces_have_tables_of_their_own() -> None:
    lines = terminal([*three("good", 1, 1), *three("trace:lmdb", 1, 1.75, judged_only=True)])
    assert "Regret by variant, 1 cells" in lines
    assert "adaptive over 1.5: 0 cells" in lines
    traces = lines[lines.index("Regret by variant in traces, 1 cells") :]
    assert line(traces, "adaptive ").split() == ["adaptive", "1.75", *["1.750"] * 2, "1.75", *["1.750"] * 2]
    assert line(traces, "trace:lmdb *").split()[2:4] == ["1", "1.00"]
    assert traces[traces.index("adaptive over 1.5 in traces: 1 cells") + 1] == "    1  trace:lmdb"


def test_reports_have_tables_of_their_own() -> None:
    lines = terminal([*three("good", 1, 1), *three("report:openers-8", 1, 1.75, family="openers")])
    assert "Regret by variant in new families, 1 cells" not in lines
    reports = lines[lines.index("Regret by variant in reports, 1 cells") :]
    assert line(reports, "adaptive ").split()[:3] == ["adaptive", "1.75", "1.750"]
    assert line(reports, "report:openers-8").split()[1:3] == ["1", "1.00"]


def test_means_for_programs() -> None:
    found = {each["variant"]: each for each in summary_to_json(ROWS)}
    assert found["adaptive"]["group"] == "patterns"
    assert (found["adaptive"]["worst"], round(found["adaptive"]["mean"], 3)) == (1.75, 1.401)
    assert [found["adaptive"][count] for count in ("cells", "over", "lost")] == [4, 2, 3]
    assert "lost" not in found["off"]


def test_percentiles_go_from_the_shortest_time_to_the_longest() -> None:
    rows = [row("adaptive", 1, f"p{number}", time=1 + number) for number in (2, 0, 1)]
    (found,) = summary_to_json(rows)
    assert found["time_percentiles"] == [1] * 50 + [2] * 50 + [3]


def test_an_ablation_for_a_document_says_what_mechanisms_do() -> None:
    of = Regrets(2.5, 1.25)
    most = dict.fromkeys((PATTERNS, FAMILIES, JUDGED, REPORTS), of)
    whole = Ablation(WHOLE, "Everything is on.", 500, {**most, TRACES: of}, {}, {})
    streams = Ablation("streams", "Reads go on.", 40, most, {"reverse": 41.7, "zipf": 1.2}, {"trace:lmdb, hdd": 1.04})
    found = [whole, streams]
    head, _, *rows = document_table([*ablation_columns(found), does_column(found)]).splitlines()
    groups = "patterns | judged | families | traces | reports"
    assert head == f"| without | lines | {groups} | who pays | which store or report | what it does |"
    assert rows == [
        "| nothing | 500 | 1.250 | 1.250 | 1.250 | 1.250 | 1.250 |  |  |  |",
        "| streams | 40 | 1.250 | 1.250 | 1.250 | - | 1.250 |"
        " reverse 41.70; zipf 1.20 | trace:lmdb, hdd 1.04 | Reads go on. |",
    ]

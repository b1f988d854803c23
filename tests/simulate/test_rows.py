# SPDX-License-Identifier: GPL-2.0-only
import json
from collections.abc import Iterator
from itertools import groupby

import pytest
from msgspec.structs import replace

from foliolab.model.reported import Reported
from foliolab.simulate.rows import RegretRow, make_rows, oracle
from foliolab.simulate.suite import FAMILIES, PATTERNS, REPORTS, ReportCase
from tests.simulate.small import DEVICES, FAST, SMALL


@pytest.fixture(scope="module")
def rows() -> list[RegretRow]:
    return make_rows(SMALL, SMALL.cases, DEVICES)


def by_cell(rows: list[RegretRow]) -> Iterator[dict[str, RegretRow]]:
    for _, members in groupby(rows, key=lambda row: row.cell):
        yield {row.variant: row for row in members}


def test_every_variant_is_in_every_cell(rows: list[RegretRow]) -> None:
    found = list(by_cell(rows))
    assert len(found) == len(SMALL.cases) * 2 * 2 * 2
    assert len({variants["off"].cell for variants in found}) == len(found)
    assert all(len(variants) == 12 + len(SMALL.windows_kb) for variants in found)


def test_the_oracle_is_the_cheapest_fixed_window_that_the_device_allows(rows: list[RegretRow]) -> None:
    for variants in by_cell(rows):
        fixed = {int(name.removeprefix("fixed-")): row for name, row in variants.items() if name.startswith("fixed-")}
        for row in variants.values():
            assert row.off_cost == variants["off"].cost
            assert row.oracle_cost == min(other.cost for other in fixed.values()) > 0
            assert row.oracle_window_kb <= row.read_ahead_kb
        best = fixed[row.oracle_window_kb]
        assert (best.cost, best.regret) == (best.oracle_cost, 1)
        assert all(other.regret >= 1 for other in fixed.values())


def test_time_has_an_oracle_of_its_own(rows: list[RegretRow]) -> None:
    others = set()
    for variants in by_cell(rows):
        fixed = [row for name, row in variants.items() if name.startswith("fixed-")]
        for row in variants.values():
            assert row.oracle_seconds == min(other.seconds for other in fixed) > 0
            assert row.time_regret == row.seconds / row.oracle_seconds
        assert min(row.time_regret for row in fixed) == 1
        cheapest = variants[f"fixed-{fixed[0].oracle_window_kb}"]
        others.add(cheapest.time_regret > 1)
    assert others == {False, True}


def test_the_smallest_of_equal_windows_is_best() -> None:
    costs = {"fixed-4": 2.0, "fixed-32": 1.0, "fixed-128": 1.0, "fixed-512": 1.0, "off": 0.5}
    assert oracle(SMALL, costs) == 32


def test_what_reads_badly_has_a_regret(rows: list[RegretRow]) -> None:
    worst = max((row for row in rows if row.variant == "fixed-4"), key=lambda row: row.regret)
    assert worst.pattern == "forward"
    assert worst.regret > 10
    for variants in by_cell(rows):
        assert variants["random"].cost == variants["fixed-4"].cost
        if variants["random"].pattern == "some":
            # No more than was touched.
            assert variants["random"].read_bytes <= 300 * 4096
            assert variants["random"].major_faults <= 300


def test_judged_only_follows_the_pattern(rows: list[RegretRow]) -> None:
    assert {row.pattern for row in rows if row.judged_only} == {"some"}
    assert {row.pattern for row in rows if not row.judged_only} == {"forward", "steps"}


def test_a_family_is_another_group_and_may_have_a_file_of_its_own(rows: list[RegretRow]) -> None:
    assert {(row.family, row.group) for row in rows} == {("", PATTERNS)}
    case = replace(SMALL.cases[0], count=1023, family="runs", file_pages=1023)
    new = make_rows(SMALL, [case], [FAST])
    assert {(row.family, row.group) for row in new} == {("runs", FAMILIES)}
    # Two windows of 512 KiB do not fit into a quarter of it.
    places = [(0.5, 128), (0.5, 512), (4, 128)]
    assert list(dict.fromkeys((row.memory, row.read_ahead_kb) for row in new)) == places
    # Where memory is small, some have pages evicted that they read ahead.
    early = {"zfetch", "adaptive", "adaptive-told", "adaptive-default"}
    assert {row.read_bytes for row in new if row.variant not in early} == {1023 * 4096}
    assert all(row.read_bytes >= 1023 * 4096 for row in new)


def test_a_report_is_another_group_and_its_size_and_reclaim_count() -> None:
    accesses = Reported("openers", 2000, 4, in_turn=2, count=200)
    case = ReportCase("report:some", "openers", accesses, 4096, judged_only=True)
    found = make_rows(SMALL, [case], [FAST])
    assert {(row.pattern, row.family, row.group, row.judged_only) for row in found} == {
        ("report:some", "openers", REPORTS, True)
    }
    assert max(row.read_bytes for row in found if row.variant == "fixed-4" and row.memory < 1) <= 800 * 4096
    more = replace(case, accesses=replace(accesses, runners=8))
    reclaimed = replace(case, reclaimed_pages=4096)
    for other in (more, reclaimed):
        assert make_rows(SMALL, [other], [FAST]) != found


def test_fewer_devices_and_cases_give_the_same_rows(rows: list[RegretRow]) -> None:
    some = make_rows(SMALL, SMALL.cases[1:], [FAST])
    assert some == [row for row in rows if row.device == "fast" and row.pattern != "forward"]


def test_json(rows: list[RegretRow]) -> None:
    row = json.loads(json.dumps(rows[-1].to_json()))
    assert {key: type(value) for key, value in row.items()} == {
        "pattern": str, "read_ahead_kb": int, "device": str, "memory": int, "variant": str, "cost": float,
        "off_cost": float, "oracle_cost": float, "oracle_window_kb": int, "seconds": float,
        "oracle_seconds": float, "time_regret": float, "regret": float, "read_bytes": int,
        "major_faults": int, "judged_only": bool, "family": str, "group": str,
    }  # fmt: skip
    assert row["regret"] == row["cost"] / row["oracle_cost"]
    assert (row["pattern"], row["memory"], row["read_ahead_kb"], row["device"]) == ("steps", 4, 512, "fast")

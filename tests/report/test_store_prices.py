# SPDX-License-Identifier: GPL-2.0-only
"""Tables of what stores cost, of prices that were never measured."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from foliolab.errors import NoResult
from foliolab.experiment.load import find_experiment
from foliolab.report.markdown import prices_to_table
from foliolab.report.view import View, make_views
from tests.samples import sample

_STORES = ("lmdb", "mdbx", "bbolt", "sqlite", "lucene")
_WORK = ("uniform", "zipf", "forward", "compact")
MIB = 1 << 20


def view(after: Mapping[tuple[str, str, int], int], stores: tuple[str, ...] = _STORES) -> View:
    """Everything costs 400 MiB with all rules off, and so it does with the window but for these."""

    def cost(store: str, workload: str, window: int, variant: str) -> int:
        return after.get((store, workload, window), 400) if variant == "adaptive" else 400

    samples = [
        sample(
            experiment="stores",
            scale="full",
            cell={"store": store, "workload": workload, "read_ahead_kb": window, "hint": "none", "times": times},
            variant=variant,
            metrics={"price_bytes": cost(store, workload, window, variant) * MIB * times, "major_faults": 7},
        )
        for store in stores
        for workload in _WORK
        for window in (128, 4096)
        for times in (2, 5)
        for variant in ("off", "adaptive")
    ]
    (found,) = make_views(samples, {"stores": find_experiment("stores")})
    return found


def test_a_row_has_what_look_ups_and_scans_cost_least_and_most() -> None:
    after = {
        ("lmdb", "uniform", 128): 320,
        ("lmdb", "zipf", 128): 312,
        ("lmdb", "uniform", 4096): 20,
        ("lmdb", "zipf", 4096): 25,
        ("bbolt", "forward", 128): 396,
        ("bbolt", "compact", 128): 432,
        ("sqlite", "zipf", 4096): 20,
    }
    head, _, lmdb, mdbx, bbolt, sqlite, _, _, about = prices_to_table(view(after), "stores").splitlines()
    assert head == "| no hint, `read_ahead_kb` | look-ups, 128 | scans, 128 | look-ups, 4096 | scans, 4096 |"
    assert lmdb == "| LMDB | -22 to -20 % | 0 % | 1/20 to 1/16 | 0 % |"
    assert mdbx == "| MDBX | 0 % | 0 % | 0 % | 0 % |"
    assert bbolt == "| bbolt | 0 % | -1 to +8 % | 0 % | 0 % |"
    assert sqlite == "| SQLite | 0 % | 0 % | -95 to 0 % | 0 % |"
    assert ", scale full, " in about


def test_a_store_that_was_not_measured_makes_no_table() -> None:
    with pytest.raises(NoResult, match=r"No look-ups of lucene"):
        prices_to_table(view({}, _STORES[:-1]), "stores")


@pytest.mark.parametrize(
    ("stock", "ours"),
    [("unpatched", "adaptive"), ("off", "adaptive"), ("off-mglru", "adaptive-mglru"), ("debian", "module")],
)
def test_pairs_of_works_show_where_the_window_is_not_as_good_as_the_better_setting(stock: str, ours: str) -> None:
    costs = {("none", ours): 157, ("none", stock): 400, ("own", stock): 150}
    samples = [
        sample(
            experiment="stores",
            cell={"store": store, "workload": workload, "read_ahead_kb": window, "hint": hint, "times": 2},
            variant=variant,
            metrics={"price_bytes": (158 if (store, window, variant) == ("lucene", 4096, ours) else cost) * MIB},
        )
        for store in _STORES
        for workload in ("uniform", "compact")
        for window in (128, 4096)
        for (hint, variant), cost in costs.items()
    ]
    (found,) = make_views(samples, {"stores": find_experiment("stores")})
    head, _, *rows = prices_to_table(found, "pairs").splitlines()
    assert head == f"| price | hint | 128: {stock} | 128: {ours} | 4096: {stock} | 4096: {ours} |"
    assert rows[0] == "| LMDB: look-ups | 150 | 400 | 157 | 400 | 157 |"
    assert rows[8:10] == [f"| Lucene: {work} | 150 | 400 | 157 | 400 | **158** |" for work in ("searches", "merge")]
    (found,) = make_views(samples[:1] + samples[2:], {"stores": find_experiment("stores")})
    with pytest.raises(NoResult, match=f"lmdb uniform was not measured with {stock}, read_ahead_kb 128, hint none"):
        prices_to_table(found, "pairs")


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("stores", "| LMDB | 0 % | 0 % | 0 % | 0 % |"),
        ("pairs", "| LMDB: look-ups | 320 | 320 | 800 | 320 | 800 |"),
        ("workloads", "| LMDB, uniform | 320 | 800 | 320 | 7 | 7 | 320 | 800 | 320 | 7 | 7 |"),
    ],
)
def test_prices_are_compared_in_the_same_boots(table: str, row: str) -> None:
    """Seeds 2 and 3 cost less, and nothing was measured with them under the window."""
    samples = [
        replace(each, cell=each.cell | {"hint": hint}, repetition=number, key=f"{each.key} {hint} {number}")
        for each in view({}).group.samples
        for hint in ("none", "own")
        for number in ((1,) if each.variant == "adaptive" else (1, 2, 3))
    ]
    less: dict[str, int | float] = {"price_bytes": 320 * MIB, "major_faults": 7}
    samples = [replace(each, metrics=less) if each.repetition > 1 else each for each in samples]
    (found,) = make_views(samples, {"stores": find_experiment("stores")})
    assert row in prices_to_table(found, table).splitlines()


def row_of(off: tuple[int, int], adaptive: tuple[int, int], hint: int | None = None) -> list[str]:
    """The cells, with windows of 128 KiB, of one workload, whose prices in MiB and major faults these are."""
    cell = {"store": "lmdb", "workload": "zipf", "read_ahead_kb": 128, "hint": "none", "times": 2}
    samples = [
        sample(
            experiment="stores",
            cell=cell,
            variant=variant,
            metrics={"price_bytes": price * MIB, "major_faults": faults},
        )
        for variant, (price, faults) in (("off", off), ("adaptive", adaptive))
    ]
    if hint is not None:
        metrics = {"price_bytes": hint * MIB, "major_faults": 7}
        samples.append(sample(experiment="stores", cell=cell | {"hint": "own"}, variant="off", metrics=metrics))
    (found,) = make_views(samples, {"stores": find_experiment("stores")})
    head, _, row, *_ = prices_to_table(found, "workloads").splitlines()
    assert head.startswith("| workload | 128: price, off | adaptive |")
    assert ("hint" in head) == (hint is not None)
    return [text.strip() for text in row.strip("|").split("|")][: 6 if hint is not None else 5]


def test_a_workload_has_a_row_in_which_losses_are_bold() -> None:
    assert row_of((200, 100), (152, 150), 155) == ["zipf", "200", "152 (-24 %)", "155", "100", "**150 (+50 %)**"]
    assert row_of((1900, 40), (100, 100)) == ["zipf", "1,900", "100 (1/19)", "40", "**100 (2.5 times)**"]
    assert row_of((200, 200), (208, 221)) == ["zipf", "200", "**208 (+4 %)**", "200", "**221 (+10 %)**"]


def test_what_is_of_no_account_is_no_loss() -> None:
    assert row_of((10, 4), (11, 19)) == ["zipf", "10", "11", "4", "19"]
    assert row_of((200, 200), (200, 200)) == ["zipf", "200", "200", "200", "200"]
    assert row_of((200, 200), (204, 218)) == ["zipf", "200", "204 (+2 %)", "200", "218 (+9 %)"]


def test_rows_of_several_stores_name_them() -> None:
    after = {("lucene", "forward", 128): 800}
    rows = [line.split(" | ") for line in prices_to_table(view(after), "workloads").splitlines()]
    assert "| Lucene, forward" in [row[0] for row in rows]


@pytest.mark.parametrize(
    ("table", "plain", "hinted"),
    [("stores", 5 * 4 * 2 * 2, 0), ("pairs", 5 * 2 * 2 * 2, 5 * 2), ("workloads", 160, 80)],
)
def test_what_stands_below_is_about_the_rows_that_a_table_shows(table: str, plain: int, hinted: int) -> None:
    samples = view({}).group.samples
    hints = [
        replace(each, cell=each.cell | {"hint": "own"}, repetition=number, key=f"{number}/{each.cell}")
        for each in samples
        if each.variant == "off"
        for number in (1, 2)
    ]
    (found,) = make_views([*samples, *hints], {"stores": find_experiment("stores")})
    *_, about = prices_to_table(found, table, lambda group, shown: f"./lab {len(list(shown))}").splitlines()
    assert about.startswith("n = 1 to 2, " if hinted else "n = 1, ")
    assert f"`./lab {plain + hinted}`" in about

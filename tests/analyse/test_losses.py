# SPDX-License-Identifier: GPL-2.0-only
from dataclasses import replace

import pytest

from foliolab.analyse.losses import Change, Difference, by_variant, make_pairs, workload_name
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.metrics import METRICS, Kind
from tests.analyse.matrix import CELLS, Figures, boots, failed, matrix


def one(metric: str, stock: list[float], folio: list[float], threshold: float = 0.02) -> Difference:
    """The only difference of one metric."""

    def figures(values: list[float]) -> list[Figures]:
        return [{metric: value} for value in values]

    samples = [*boots("stock", *figures(stock)), *boots("folio", *figures(folio))]
    (difference,) = matrix(*samples, metrics=[metric], threshold=threshold).differences
    return difference


@pytest.mark.parametrize(
    ("metric", "stock", "folio", "loss", "change"),
    [
        ("major_faults", 1000, 1330, 0.33, Change.WORSE),
        ("major_faults", 1000, 670, -0.33, Change.BETTER),
        ("major_faults", 1000, 1000, 0, Change.SAME),
        ("contpte_share", 0.8, 0.6, 0.25, Change.WORSE),
        ("contpte_share", 0.8, 1, -0.25, Change.BETTER),
    ],
)
def test_what_is_worse_depends_on_the_metric(
    metric: str, stock: float, folio: float, loss: float, change: Change
) -> None:
    found = one(metric, [stock], [folio])
    assert (found.baseline, found.value, found.n) == (stock, folio, 1)
    assert found.loss == pytest.approx(loss)
    assert found.change is change


@pytest.mark.parametrize(
    ("folio", "threshold", "change"),
    [
        (10_200, 0.02, Change.SAME),
        (10_201, 0.02, Change.WORSE),
        (9_800, 0.02, Change.SAME),
        (9_799, 0.02, Change.BETTER),
        (10_201, 0.03, Change.SAME),
        (10_064, 0, Change.WORSE),
    ],
)
def test_a_difference_counts_above_the_threshold(folio: float, threshold: float, change: Change) -> None:
    assert one("major_faults", [10_000], [folio], threshold).change is change


@pytest.mark.parametrize(
    ("stock", "folio", "loss", "change"),
    [
        (3, 4, 1 / 64, Change.SAME),
        (3, 66, 63 / 64, Change.SAME),
        (3, 67, 1, Change.WORSE),
        (100, 163, 0.63, Change.SAME),
        (100, 164, 0.64, Change.WORSE),
        (67, 3, -64 / 67, Change.BETTER),
        (0, 0, 0, Change.SAME),
        (0, 63, 63 / 64, Change.SAME),
        (0, 6400, 100, Change.WORSE),
    ],
)
def test_few_events_do_not_cry_wolf_and_none_divide_nothing(
    stock: float, folio: float, loss: float, change: Change
) -> None:
    found = one("major_faults", [stock], [folio])
    assert found.loss == pytest.approx(loss)
    assert found.change is change


def test_a_major_fault_that_is_a_minor_one_now_is_no_loss() -> None:
    def figures(major: float, minor: float) -> Figures:
        return {"major_faults": major, "minor_faults": minor}

    samples = [*boots("stock", figures(1000, 2000)), *boots("folio", figures(300, 2600))]
    found = {each.metric: each for each in matrix(*samples, metrics=["major_faults", "faults"]).differences}
    assert (found["faults"].baseline, found["faults"].value) == (3000, 2900)
    assert [found[name].change for name in ("faults", "major_faults")] == [Change.BETTER, Change.BETTER]
    (gap,) = matrix(*boots("stock", {"major_faults": 1}), *boots("folio", {"major_faults": 1}), metrics=["faults"]).gaps
    assert gap.sentence == "faults is missing."


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_metric_has_something_negligible(kind: Kind) -> None:
    metric = replace(METRICS["major_faults"], kind=kind)
    assert metric.negligible > 0


@pytest.mark.parametrize(
    ("stock", "folio", "change"),
    [
        ([1000, 2000, 3000], [1100, 2200, 3300], Change.WORSE),
        ([1000, 2000, 3000], [900, 1800, 2700], Change.BETTER),
        # A boot that says the opposite, also where the medians are far apart.
        ([1000, 2000, 3000], [999, 2500, 3300], Change.SAME),
        ([1000, 2000, 3000], [1001, 1500, 2700], Change.SAME),
        ([1000, 2000, 3000], [1000, 2500, 3300], Change.SAME),
        ([1000, 2000, 3000], [1000, 1500, 2700], Change.SAME),
    ],
)
def test_every_repetition_has_to_agree_with_its_own_of_the_baseline(
    stock: list[float], folio: list[float], change: Change
) -> None:
    found = one("major_faults", stock, folio)
    assert (found.baseline, found.value, found.n) == (sorted(stock)[1], sorted(folio)[1], 3)
    assert found.change is change


@pytest.mark.parametrize(
    ("worse", "equal", "better", "change"),
    [
        (5, 0, 0, Change.WORSE),
        (4, 0, 1, Change.SAME),
        (5, 0, 1, Change.WORSE),
        (5, 1, 0, Change.WORSE),
        (4, 2, 0, Change.SAME),
        (7, 0, 2, Change.WORSE),
        (6, 0, 3, Change.SAME),
        (2, 0, 7, Change.BETTER),
        (19, 0, 11, Change.WORSE),
        (18, 0, 12, Change.SAME),
    ],
)
def test_of_many_repetitions_so_many_have_to_agree_as_chance_makes_seldom(
    worse: int, equal: int, better: int, change: Change
) -> None:
    folio = [2000.0] * worse + [1000.0] * equal + [500.0] * better
    found = one("major_faults", [1000.0] * len(folio), folio)
    assert (found.n, found.agreeing) == (len(folio), worse if found.loss > 0 else better)
    assert found.change is change


def test_repetitions_that_only_one_has_are_left_out() -> None:
    found = one("major_faults", [1000, 5000, 9000], [1000])
    assert (found.baseline, found.value, found.n) == (1000, 1000, 1)


def test_other_repetitions_only() -> None:
    late = [replace(each, repetition=2, key="late") for each in boots("folio", {"major_faults": 1})]
    found = matrix(*boots("stock", {"major_faults": 1}), *late)
    assert not found.differences
    (gap,) = found.gaps
    assert (gap.outcome, gap.sentence) == ("not-measured", "The baseline has other repetitions only.")


def test_what_loses_most_comes_first_and_what_does_not_count_after_it() -> None:
    stock = {"major_faults": 10, "contpte_share": 0.5, "read_bytes": 100e6}
    folio = {"major_faults": 70, "contpte_share": 0.4, "read_bytes": 50e6}
    sqlite = {"major_faults": 10, "contpte_share": 0.1, "read_bytes": 101e6}
    samples = [
        *boots("stock", stock),
        *boots("folio", folio),
        *boots("stock", stock, workload="sqlite"),
        *boots("folio", sqlite, workload="sqlite"),
    ]
    found = matrix(*samples, cells=CELLS)
    assert [(each.workload, each.metric, each.change) for each in found.differences] == [
        ("sqlite", "contpte_share", Change.WORSE),
        ("gcc", "contpte_share", Change.WORSE),
        ("gcc", "major_faults", Change.SAME),
        ("sqlite", "read_bytes", Change.SAME),
        ("sqlite", "major_faults", Change.SAME),
        ("gcc", "read_bytes", Change.BETTER),
    ]
    assert [(pair.deciding.workload, pair.gain and pair.gain.metric) for pair in make_pairs(found)] == [
        ("sqlite", None),
        ("gcc", "read_bytes"),
    ]


def test_a_gain_decides_where_nothing_loses_and_else_what_is_worst() -> None:
    stock = {"major_faults": 1000, "contpte_share": 0.5, "read_bytes": 100e6}
    gains = {"major_faults": 1010, "contpte_share": 0.8, "read_bytes": 10e6}
    same = {"major_faults": 1010, "contpte_share": 0.5, "read_bytes": 100e6}
    found = matrix(*boots("stock", stock), *boots("folio", gains), *boots("series", same), variants=["folio", "series"])
    deciding = {pair.deciding.variant: pair.deciding.metric for pair in make_pairs(found)}
    assert deciding == {"series": "major_faults", "folio": "read_bytes"}
    folio, series = by_variant(found)
    assert (folio.variant, folio.workloads, len(folio.worse), len(folio.better)) == ("folio", 1, 0, 1)
    assert (series.variant, series.workloads, len(series.worse), len(series.better)) == ("series", 1, 0, 0)


def test_the_greatest_loss_and_the_greatest_gain_come_first_in_a_summary() -> None:
    cells = [Cell.of({"workload": name}) for name in "abcd"]
    samples = []
    for name, faults in zip("abcd", (1100, 2000, 500, 100), strict=True):
        samples += boots("stock", {"major_faults": 1000}, workload=name)
        samples += boots("folio", {"major_faults": faults}, workload=name)
    (summary,) = by_variant(matrix(*samples, cells=cells, metrics=["major_faults"]))
    assert [pair.deciding.workload for pair in summary.worse] == ["b", "a"]
    assert [pair.deciding.workload for pair in summary.better] == ["d", "c"]


@pytest.mark.parametrize(("fails", "others"), [("folio", "stock"), ("stock", "folio")])
def test_a_failure_is_a_gap_and_a_workload_that_is_missing(fails: str, others: str) -> None:
    found = matrix(*boots(others, {"major_faults": 1}), failed(fails))
    assert not found.differences
    (gap,) = found.gaps
    assert (gap.variant, gap.outcome, gap.sentence, gap.failed) == (fails, "guest-crash", "Oops: int3.", True)
    (summary,) = by_variant(found)
    assert (summary.workloads, summary.missing) == (0, 1)


def test_one_failed_boot_of_several_is_a_gap_beside_the_figures() -> None:
    figures = [{"major_faults": 1000.0}] * 2
    found = matrix(*boots("stock", *figures), *boots("folio", *figures[:1]), failed("folio", repetition=2))
    assert [each.n for each in found.differences] == [1]
    assert ("folio", "guest-crash") in [(gap.variant, gap.outcome) for gap in found.gaps]
    (summary,) = by_variant(found)
    assert (summary.workloads, summary.missing) == (1, 1)


def test_what_does_not_apply_is_a_gap_that_is_no_failure() -> None:
    found = matrix(*boots("stock", {"major_faults": 1}), failed("folio", outcome="not-applicable"))
    (gap,) = found.gaps
    assert (gap.outcome, gap.failed) == ("not-applicable", False)
    assert by_variant(found)[0].missing == 0


def test_what_nobody_measured_is_a_gap() -> None:
    gaps = matrix(*boots("stock", {"major_faults": 1}), cells=CELLS).gaps
    assert [(gap.workload, gap.variant, gap.outcome) for gap in gaps] == [
        ("gcc", "folio", "not-measured"),
        ("sqlite", "stock", "not-measured"),
        ("sqlite", "folio", "not-measured"),
    ]
    assert [gap.variant for gap in matrix().gaps] == ["stock", "folio"]


def test_a_metric_that_the_variant_lacks_is_a_gap() -> None:
    both = {"major_faults": 1.0, "read_bytes": 1.0}
    found = matrix(*boots("stock", both), *boots("folio", {"major_faults": 1}), metrics=tuple(both))
    assert [each.metric for each in found.differences] == ["major_faults"]
    (gap,) = found.gaps
    assert (gap.outcome, gap.sentence, gap.failed) == ("not-measured", "read_bytes is missing.", True)


def test_a_metric_that_the_baseline_lacks_says_nothing_of_the_variant() -> None:
    both = {"major_faults": 1.0, "read_bytes": 1.0}
    found = matrix(*boots("stock", {"major_faults": 1}), *boots("folio", both), metrics=tuple(both))
    (gap,) = found.gaps
    assert (gap.outcome, gap.sentence, gap.failed) == ("not-counted", "read_bytes is missing.", False)


@pytest.mark.parametrize(
    ("axes", "name"),
    [
        ({"workload": "gcc"}, "gcc"),
        ({"workload": "gcc", "memory": 64}, "gcc memory 64"),
        ({"pattern": "stride", "stride": 3, "threads": 2}, "sparse-mmap stride 3 threads 2"),
    ],
)
def test_names_of_workloads(axes: dict[str, str | int], name: str) -> None:
    assert workload_name(find_experiment("sparse-mmap"), Cell.of(axes)) == name

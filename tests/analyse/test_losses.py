# SPDX-License-Identifier: GPL-2.0-only
from dataclasses import replace

import pytest
from msgspec import structs

from foliolab.analyse.differences import Change, Difference, workload_name
from foliolab.analyse.losses import Matrix, by_variant, make_pairs
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.metrics import METRICS, Kind
from tests.analyse.matrix import CELLS, Figures, boots, matrix


def one(
    metric: str, off: list[float], adaptive: list[float], threshold: float = 0.02, *, repeats: bool = True
) -> Difference:
    """The only difference of one metric."""

    def figures(values: list[float]) -> list[Figures]:
        return [{metric: value} for value in values]

    samples = [*boots("off", *figures(off)), *boots("adaptive", *figures(adaptive))]
    (difference,) = matrix(*samples, metrics=[metric], threshold=threshold, repeats=repeats).differences
    return difference


@pytest.mark.parametrize(
    ("metric", "off", "adaptive", "loss", "change"),
    [
        ("major_faults", 1000, 1330, 0.33, Change.WORSE),
        ("major_faults", 1000, 670, -0.33, Change.BETTER),
        ("major_faults", 1000, 1000, 0, Change.SAME),
        ("contpte_share", 0.8, 0.6, 0.25, Change.WORSE),
        ("contpte_share", 0.8, 1, -0.25, Change.BETTER),
    ],
)
def test_what_is_worse_depends_on_the_metric(
    metric: str, off: float, adaptive: float, loss: float, change: Change
) -> None:
    found = one(metric, [off] * 2, [adaptive] * 2)
    assert (found.baseline, found.value, found.n) == (off, adaptive, 2)
    assert found.loss == pytest.approx(loss)
    assert found.change is change


@pytest.mark.parametrize(
    ("adaptive", "threshold", "change"),
    [
        (10_200, 0.02, Change.SAME),
        (10_201, 0.02, Change.WORSE),
        (9_800, 0.02, Change.SAME),
        (9_799, 0.02, Change.BETTER),
        (10_201, 0.03, Change.SAME),
        (10_064, 0, Change.WORSE),
    ],
)
def test_a_difference_counts_above_the_threshold(adaptive: float, threshold: float, change: Change) -> None:
    assert one("major_faults", [10_000] * 2, [adaptive] * 2, threshold).change is change


@pytest.mark.parametrize(
    ("off", "adaptive", "loss", "change"),
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
    off: float, adaptive: float, loss: float, change: Change
) -> None:
    found = one("major_faults", [off] * 2, [adaptive] * 2)
    assert found.loss == pytest.approx(loss)
    assert found.change is change


def test_a_major_fault_that_is_a_minor_one_now_is_no_loss() -> None:
    def figures(major: float, minor: float) -> Figures:
        return {"major_faults": major, "minor_faults": minor}

    samples = [*boots("off", *[figures(1000, 2000)] * 2), *boots("adaptive", *[figures(300, 2600)] * 2)]
    found = {each.metric: each for each in matrix(*samples, metrics=["major_faults", "faults"]).differences}
    assert (found["faults"].baseline, found["faults"].value) == (3000, 2900)
    assert [found[name].change for name in ("faults", "major_faults")] == [Change.BETTER, Change.BETTER]
    (gap,) = matrix(
        *boots("off", {"major_faults": 1}), *boots("adaptive", {"major_faults": 1}), metrics=["faults"]
    ).gaps
    assert gap.sentence == "faults is missing."


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_metric_has_something_negligible(kind: Kind) -> None:
    metric = structs.replace(METRICS["major_faults"], kind=kind)
    assert metric.negligible > 0


@pytest.mark.parametrize(
    ("off", "adaptive", "change"),
    [
        ([1000] * 2, [1100] * 2, Change.WORSE),
        ([1000] * 3, [900] * 3, Change.BETTER),
        ([1000, 2000, 3000], [1100, 2100, 3100], Change.WORSE),
        ([1000, 2000, 3000], [1000, 2000, 3000], Change.SAME),
        ([1000, 2000, 3000], [1010, 2010, 3010], Change.SAME),
        # One boot cannot tell whether another seed does the opposite, nor can a few of which each differs by its own.
        ([1000], [1100], Change.SUSPECTED),
        ([1000], [900], Change.NOT_SHOWN),
        ([1000], [1000], Change.NOT_SHOWN),
        ([1000, 2000, 3000], [1100, 2200, 3300], Change.SUSPECTED),
        ([1000, 2000, 3000], [900, 1800, 2700], Change.NOT_SHOWN),
        # One seed alone has a loss that counts.
        ([1000, 2000, 3000], [1001, 2002, 3200], Change.NOT_SHOWN),
        # All seeds are alike to the baseline, and not to the variant.
        ([0, 0, 0], [70, 3000, 300], Change.SUSPECTED),
        # The variant contradicts itself: its figures are not those of any boot.
        ([1000, 2000, 3000], [999, 2500, 3300], Change.NOT_SHOWN),
    ],
)
def test_two_boots_tell_what_is_the_same_in_each(off: list[float], adaptive: list[float], change: Change) -> None:
    found = one("major_faults", off, adaptive)
    assert found.change is change
    assert found.repeats is (found.p is None) is (change in (Change.WORSE, Change.BETTER, Change.SAME))
    if found.repeats:
        assert found.interval == (found.loss, found.loss)
        assert found.smallest_visible == 0


def test_seeds_enough_of_which_each_differs_by_its_own_are_judged_among_all_figures() -> None:
    """Though the baseline repeats: twenty figures, of which chance makes one go one way in six seeds."""
    cells = [Cell.of({"workload": str(number)}) for number in range(20)]
    off = [{"major_faults": 1000.0 * number} for number in range(1, 7)]
    samples = []
    for number in range(20):
        signs = [1] * 6 if number == 7 else [1, -1] * 3
        moved = [
            {"major_faults": each["major_faults"] * (1 + sign / 10)} for each, sign in zip(off, signs, strict=True)
        ]
        samples += [*boots("off", *off, workload=str(number)), *boots("adaptive", *moved, workload=str(number))]
    worst, *_ = matrix(*samples, cells=cells, metrics=["major_faults"]).differences
    assert (worst.workload, worst.change, worst.repeats) == ("7", Change.SUSPECTED, False)


def test_all_boots_of_both_with_one_figure_repeat_without_a_second_baseline() -> None:
    assert one("major_faults", [1000] * 2, [1100] * 2, repeats=False).change is Change.WORSE
    assert not one("major_faults", [1000], [1100], repeats=False).repeats
    assert not one("major_faults", [1000, 1001], [1100, 1100], repeats=False).repeats


@pytest.mark.parametrize(
    ("adaptive", "change"),
    [
        # Too few to show anything: what agrees as well as it can is suspected, if it is a loss.
        ([1100], Change.SUSPECTED),
        ([1100, 1101, 1102], Change.SUSPECTED),
        ([900, 901, 902], Change.NOT_SHOWN),
        ([1100, 1101, 999], Change.NOT_SHOWN),
        ([1001, 1002, 1003], Change.NOT_SHOWN),
        ([1100, 1101, 1102, 1103, 1104], Change.SUSPECTED),
        ([1100, 1101, 1102, 1103, 999], Change.NOT_SHOWN),
        # One in 32.
        ([1100, 1101, 1102, 1103, 1104, 1105], Change.WORSE),
        ([900, 901, 902, 903, 904, 905], Change.BETTER),
        ([1100, 1101, 1102, 1103, 1104, 999], Change.NOT_SHOWN),
        # One that says the opposite by less than any other is borne by eight.
        ([1100, 1101, 1102, 1103, 1104, 1105, 1106, 999], Change.WORSE),
        ([1001, 1002, 1003, 1004, 1005, 1006], Change.SAME),
        ([1000 + number for number in (-8, 5, -3, 2, 6, 1)], Change.SAME),
        ([1000 + number for number in (-80, 50, -30, 20, 60, 10)], Change.NOT_SHOWN),
        ([1000.0] * 5 + [1001], Change.SAME),
        # One of twelve has nine times the faults, which moves neither the loss nor its interval.
        ([1000.0] * 11 + [9000], Change.NOT_SHOWN),
    ],
)
def test_what_varies_counts_if_chance_seldom_does_it(adaptive: list[float], change: Change) -> None:
    assert one("major_faults", [1000] * len(adaptive), adaptive, threshold=0.05, repeats=False).change is change


def test_seeds_are_paired() -> None:
    """What seeds do to a figure says nothing of the variants."""
    off = [1000.0, 2000, 4000, 8000, 16000, 32000]
    found = one("major_faults", off, [figure + 500 + number for number, figure in enumerate(off)], repeats=False)
    assert found.change is Change.WORSE
    assert (found.baseline, found.value) == (6000, 6502.5)
    assert found.loss == pytest.approx(502.5 / 6000)
    assert found.interval == pytest.approx((500 / 6000, 505 / 6000))
    assert found.smallest_visible == pytest.approx(2.5 / 6000)


def test_one_among_many_takes_more_boots() -> None:
    """Of twenty figures that vary, one gets worse: six boots cannot tell it from chance, ten can."""
    cells = [Cell.of({"workload": str(number)}) for number in range(20)]

    def found(count: int, *opposite: float) -> Matrix:
        """With these figures of as many boots that say the opposite."""
        samples = []
        for cell in cells:
            name = str(cell.as_dict()["workload"])
            noise = [(-1) ** number * (100.0 + number) for number in range(count)]
            samples += boots("off", *[{"major_faults": 10_000}] * count, workload=name)
            moved = [*opposite, *(2_000.0 + each for each in noise[len(opposite) :])] if name == "7" else noise
            samples += boots("adaptive", *({"major_faults": 10_000 + each} for each in moved), workload=name)
        return matrix(*samples, cells=cells, metrics=["major_faults"], repeats=False)

    assert found(6).boots_needed == 10
    for count, change in ((6, Change.SUSPECTED), (9, Change.SUSPECTED), (10, Change.WORSE)):
        worst = found(count).differences[0]
        assert (worst.workload, worst.change) == ("7", change)
        assert worst.p == 2.0 ** (1 - count)
        assert worst.p_corrected == 20 * 2.0 ** (1 - count)
    # With boots enough for what all of them say, one that says the opposite leaves a suspicion.
    for count, change in ((9, Change.SUSPECTED), (10, Change.SUSPECTED), (11, Change.WORSE)):
        (contradicted,) = (each for each in found(count, -10.0).differences if each.workload == "7")
        assert (contradicted.change, contradicted.p) == (change, 2.0 ** (2 - count))


@pytest.mark.parametrize("repeats", [True, False])
def test_the_baseline_beside_itself_is_no_variant(repeats: bool) -> None:
    arms = [*boots("off", *[{"major_faults": 1000}] * 2), *boots("adaptive", *[{"major_faults": 1}] * 2)]
    found = matrix(*arms, repeats=repeats)
    assert {each.variant for each in found.differences} == {"adaptive"}
    assert [(each.variant, each.change) for each in found.again] == [("off again", Change.SAME)] * repeats


def test_repetitions_that_only_one_has_are_left_out() -> None:
    found = one("major_faults", [1000, 5000, 9000], [1000])
    assert (found.baseline, found.value, found.n) == (1000, 1000, 1)


def test_other_repetitions_only() -> None:
    late = [replace(each, repetition=2, key="late") for each in boots("adaptive", {"major_faults": 1})]
    found = matrix(*boots("off", {"major_faults": 1}), *late)
    assert not found.differences
    (gap,) = found.gaps
    assert (gap.outcome, gap.sentence) == ("not-measured", "The baseline has other repetitions only.")


def test_what_loses_most_comes_first_and_what_does_not_count_after_it() -> None:
    off = {"major_faults": 10, "contpte_share": 0.5, "read_bytes": 100e6}
    adaptive = {"major_faults": 70, "contpte_share": 0.4, "read_bytes": 50e6}
    sqlite = {"major_faults": 10, "contpte_share": 0.1, "read_bytes": 101e6}
    samples = [
        *boots("off", off, off),
        *boots("adaptive", adaptive, adaptive),
        *boots("off", off, off, workload="sqlite"),
        *boots("adaptive", sqlite, sqlite, workload="sqlite"),
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
    pairs = [(pair.deciding.workload, pair.deciding.metric, pair.gain) for pair in make_pairs(found)]
    assert pairs == [("sqlite", "contpte_share", None), ("gcc", "contpte_share", found.differences[-1])]


def test_a_gain_decides_where_nothing_loses_and_else_the_main_metric() -> None:
    off = {"major_faults": 1000, "contpte_share": 0.5, "read_bytes": 100e6}
    gains = {"major_faults": 1010, "contpte_share": 0.8, "read_bytes": 10e6}
    same = {"major_faults": 1010, "contpte_share": 0.5, "read_bytes": 100e6}
    found = matrix(
        *boots("off", off, off),
        *boots("adaptive", gains, gains),
        *boots("published", same, same),
        variants=["adaptive", "published"],
    )
    deciding = {pair.deciding.variant: pair.deciding.metric for pair in make_pairs(found)}
    assert deciding == {"published": "read_bytes", "adaptive": "read_bytes"}
    adaptive, published = by_variant(found)
    assert (adaptive.variant, adaptive.workloads, len(adaptive.worse), len(adaptive.better)) == ("adaptive", 1, 0, 1)
    assert (published.variant, published.workloads, len(published.worse), len(published.better)) == (
        "published",
        1,
        0,
        0,
    )


def test_the_greatest_loss_and_the_greatest_gain_come_first_in_a_summary() -> None:
    cells = [Cell.of({"workload": name}) for name in "abcd"]
    samples = []
    for name, faults in zip("abcd", (1100, 2000, 500, 100), strict=True):
        samples += boots("off", *[{"major_faults": 1000}] * 2, workload=name)
        samples += boots("adaptive", *[{"major_faults": faults}] * 2, workload=name)
    (summary,) = by_variant(matrix(*samples, cells=cells, metrics=["major_faults"]))
    assert [pair.deciding.workload for pair in summary.worse] == ["b", "a"]
    assert [pair.deciding.workload for pair in summary.better] == ["d", "c"]


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


def test_nothing_gets_less_than_nothing() -> None:
    """Though the mean of pairs is more than the median of the baseline, which a loss is a share of."""
    off = [1000.0, 1000, 1000, 1100, 4000, 4000, 4000]
    found = one("major_faults", off, [0.0] * 7, repeats=False)
    assert found.loss == -1
    assert found.interval == pytest.approx((-1, -1000 / 1100))
    few = one("major_faults", [1000.0, 1000, 1000, 4000, 4000], [0.0] * 5, repeats=False)
    assert (few.loss, few.interval) == (-1, None)


def test_what_counted_nothing_never_stands_for_a_workload() -> None:
    figures = {"major_faults": 0.0, "contpte_share": 0.5, "read_bytes": 0.0}
    (pair,) = make_pairs(matrix(*boots("off", figures, figures), *boots("adaptive", figures, figures)))
    assert (pair.deciding.metric, pair.deciding.change) == ("contpte_share", Change.SAME)


def test_without_gain_or_loss_what_the_experiment_is_about_is_shown() -> None:
    off = {"major_faults": 5542.0, "contpte_share": 0.5, "read_bytes": 1e9}
    mine = {"major_faults": 5540.0, "contpte_share": 0.499, "read_bytes": 1e9}
    (pair,) = make_pairs(matrix(*boots("off", off, off), *boots("adaptive", mine, mine)))
    assert pair.deciding.metric == find_experiment("sparse-mmap").metric == "read_bytes"

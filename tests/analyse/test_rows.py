# SPDX-License-Identifier: GPL-2.0-only
from typing import Any

from foliolab.analyse.rows import Row, Spread, group_samples, make_rows
from foliolab.campaign.sample import Sample
from foliolab.experiment.load import find_experiment
from tests.samples import sample


def rows_of(*samples: Sample) -> dict[str, Row]:
    (group,) = group_samples(samples)
    return {row.variant: row for row in make_rows(group, find_experiment("sparse-mmap"))}


def test_median_spread_and_floor() -> None:
    row = rows_of(*(sample(value, repetition=number) for number, value in enumerate((30, 10, 50), start=1)))["off"]
    assert row.n == 3
    spread = row.metrics["read_bytes"]
    assert spread == Spread({1: 30, 2: 10, 3: 50})
    assert (spread.median, spread.least, spread.most) == (30, 10, 50)
    assert row.times_floor == 3


def test_ratios_are_to_unpatched() -> None:
    rows = rows_of(sample(20), sample(40, variant="unpatched", named="unpatched"), sample(4, variant="published"))
    assert {name: (row.ratio, row.ratio_to) for name, row in rows.items()} == {
        "unpatched": (1, "unpatched"),
        "off": (0.5, "unpatched"),
        "published": (0.1, "unpatched"),
    }


def test_a_ratio_is_over_the_repetitions_that_both_have() -> None:
    """Which are seeds: those of 4 to 6 take twice as much."""
    base = [sample(value, repetition=number) for number, value in enumerate((10, 11, 12, 20, 21, 22), start=1)]
    mine = [sample(value, variant="published", repetition=number) for number, value in enumerate((10, 11, 12), start=1)]
    row = rows_of(*base, *mine)["published"]
    assert (row.metrics["read_bytes"].median, row.ratio) == (11, 1)
    apart = rows_of(base[0], sample(10, variant="published", repetition=2))["published"]
    assert (apart.ratio, apart.ratio_to) == (None, "off")


def test_a_row_is_of_one_kernel_though_a_variant_has_come_to_mean_another() -> None:
    before = sample(1, variant="debian", named="debian:6.1", kernel="k6.1")
    now = sample(2, variant="debian", named="image:debian:6.12", kernel="k6.12", repetition=2)
    (group,) = group_samples([before, now])
    assert (group.samples, group.older) == ((now,), 1)


def test_without_unpatched_to_off() -> None:
    rows = rows_of(sample(20), sample(5, variant="published"))
    assert (rows["published"].ratio, rows["published"].ratio_to) == (0.25, "off")


def test_without_ours_to_the_first_kernel_as_it_boots() -> None:
    first, second = ({"variant": name, "named": name, "kernel": name} for name in ("linux@old", "linux@new"))
    rows = rows_of(sample(20, **first), sample(5, **second), sample(10, variant="published"))
    assert (rows["linux@new"].ratio, rows["linux@new"].ratio_to) == (0.25, "linux@old")


def test_without_either_there_is_no_ratio() -> None:
    row = rows_of(sample(5, variant="published"))["published"]
    assert (row.ratio, row.ratio_to) == (None, None)


def test_failures_are_counted_apart() -> None:
    rows = rows_of(
        sample(20),
        sample(outcome="guest-crash", sentence="Oops.", repetition=2),
        sample(outcome="hang", sentence="Slow.", variant="published"),
    )
    assert (rows["off"].n, rows["off"].failures) == (1, {"guest-crash": 1})
    assert (rows["published"].n, rows["published"].failures, rows["published"].ratio) == (0, {"hang": 1}, None)


def test_published_figures_are_scaled() -> None:
    row = rows_of(sample(20))["off"]
    assert row.published == {"read_bytes": 223.377 * (1 << 30) / 8, "seconds": 101.293}


def test_rows_follow_the_experiment_s_order() -> None:
    samples = [
        sample(1, cell={"pattern": "sequential"}),
        sample(1, variant="published"),
        sample(1),
        sample(1, cell={"pattern": "stride", "stride": 4099}),
        sample(1, cell={"pattern": "stride", "stride": 1021}),
    ]
    (group,) = group_samples(samples)
    order = [(row.cell.label, row.variant) for row in make_rows(group, find_experiment("sparse-mmap"))]
    assert order == [
        ("random", "off"),
        ("random", "published"),
        ("stride 1021", "off"),
        ("stride 4099", "off"),
        ("sequential", "off"),
    ]


def test_without_an_experiment_file_there_are_rows_all_the_same() -> None:
    (group,) = group_samples([sample(20), sample(5, variant="published")])
    rows = make_rows(group, None)
    assert [(row.variant, row.ratio, row.published) for row in rows] == [("off", 1, {}), ("published", 0.25, {})]


def test_machines_backends_and_scales_are_not_mixed() -> None:
    groups = group_samples([sample(1), sample(2, backend="qemu-kvm"), sample(3, scale="full")])
    assert [(group.backend, group.scale) for group in groups] == [
        ("qemu-tcg", "quick"),
        ("qemu-kvm", "quick"),
        ("qemu-tcg", "full"),
    ]


def test_the_newest_kernel_of_each_named_counts() -> None:
    (group,) = group_samples(
        [
            sample(1, kernel="old"),
            sample(2, kernel="control", variant="unpatched", named="unpatched"),
            sample(3, kernel="new", variant="published"),
        ]
    )
    assert [item.kernel.hash for item in group.samples] == ["control", "new"]
    assert group.older == 1


def test_the_newest_probe_and_parameters_count_for_all() -> None:
    (group,) = group_samples([sample(1, variant="unpatched", named="unpatched", workload="old"), sample(2)])
    assert [item.variant for item in group.samples] == ["off"]
    (group,) = group_samples([sample(1), sample(2, parameters={"cpus": 1})])
    assert [item.metrics["read_bytes"] for item in group.samples] == [2]


def test_the_last_attempt_counts() -> None:
    (group,) = group_samples([sample(outcome="lost-host", sentence="QEMU went away."), sample(2)])
    assert [item.outcome for item in group.samples] == ["ok"]
    assert group.older == 0


def test_a_lost_host_that_is_merged_later_hides_no_result() -> None:
    lost = sample(outcome="lost-host", sentence="QEMU went away.")
    assert lost.key == sample(2).key
    (group,) = group_samples([sample(2), lost])
    assert [item.outcome for item in group.samples] == ["ok"]


def test_a_newer_kernel_without_any_result_hides_no_result() -> None:
    newer: list[dict[str, Any]] = [
        {"outcome": "not-applicable", "sentence": "There is no Go.", "boot": ""},
        {"outcome": "lost-host", "sentence": "QEMU went away."},
    ]
    for other in newer:
        (group,) = group_samples([sample(2), sample(**other, kernel="k-newer")])
        assert [item.outcome for item in group.samples] == ["ok"], other
        assert group.older == 1
    (group,) = group_samples([sample(2), sample(3, kernel="k-newer")])
    assert [item.kernel.hash for item in group.samples] == ["k-newer"]


def test_the_newest_switches_of_each_variant_count() -> None:
    before = [sample(1, switches={"x/adaptive": 1}, repetition=number) for number in (1, 2, 3)]
    other = sample(2, variant="published", switches={"x/adaptive": 0})
    (group,) = group_samples([*before, other, sample(3, switches={"x/adaptive": 2})])
    assert [(item.variant, item.switches["x/adaptive"]) for item in group.samples] == [("published", 0), ("off", 2)]
    assert group.older == 3


def test_what_a_host_lacks_hides_no_result() -> None:
    lacking: dict[str, Any] = {"outcome": "not-applicable", "sentence": "There is no Go.", "boot": ""}
    there = [sample(1, data="d"), sample(1, data="d", variant="unpatched", named="unpatched", kernel="k0")]
    absent = [
        sample(**lacking),
        sample(**lacking, variant="unpatched", named="unpatched", kernel="k0"),
        sample(**lacking, cell={"pattern": "sequential"}),
        sample(**lacking, variant="published"),
    ]
    (group,) = group_samples([*there, *absent])
    assert list(group.samples) == [*there, *absent[2:]]

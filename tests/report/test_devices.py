# SPDX-License-Identifier: GPL-2.0-only
"""Timed disks beside each other, of seconds that were never measured."""

from typing import Any

import pytest

from foliolab.campaign.sample import Sample
from foliolab.errors import NoResult
from foliolab.experiment.load import find_experiment
from foliolab.report.devices import by_device, seconds_columns
from foliolab.report.markdown import devices_to_table, document_table
from foliolab.report.view import View, make_views
from tests.samples import sample


def timed(device: str, variant: str, seconds: float, price: int = 400, **others: Any) -> Sample:
    place: dict[str, Any] = {"experiment": "reports", "backend": "qemu-icount", "cell": {"case": "writes"}, **others}
    metrics = {"price_bytes": price, "seconds": seconds}
    return sample(device=device, variant=variant, metrics=metrics, parameters={"device": device}, **place)


def tables(*samples: Sample) -> list[list[View]]:
    return by_device(make_views(samples, {"reports": find_experiment("reports")}))


def test_each_disk_has_columns_and_the_quickest_comes_first() -> None:
    (views,) = tables(
        timed("hdd", "off", 8),
        timed("hdd", "adaptive", 4, price=500),
        timed("nvme", "off", 0.02),
        timed("nvme", "adaptive", 0.03),
        timed("nvme", "unpatched", 0.021),
        timed("", "off", 9),
        timed("", "adaptive", 90),
        timed("nvme", "off", 1, cell={"case": "parts"}),
        timed("nvme", "adaptive", 6, cell={"case": "parts"}),
    )
    head, _, row, _, means, _, *about = devices_to_table(views).splitlines()
    titles = "seconds: nvme | seconds: hdd | price: nvme | price: hdd | seconds of off: nvme | seconds of off: hdd"
    titles += " | unpatched over off: nvme"
    assert head == f"| cell | {titles} |"
    assert row == "| writes | 1.50 | 0.50 | 1.00 | 1.25 | 0.020 | 8.000 | 1.05 |"
    assert means == "| geometric mean | 3.00 | 0.50 | 1.00 | 1.25 |  |  | 1.05 |"
    places = [f"- n = 1, qemu-icount, x86_64-4k, {device}, scale " for device in ("nvme", "hdd")]
    assert all(line.startswith(place) for line, place in zip(about, places, strict=True))


def test_what_takes_longer_takes_so_in_the_same_boots() -> None:
    """Seeds 3 and 4 take twice as long, and one variant was not measured with them."""
    base = [timed("nvme", "off", seconds, repetition=number) for number, seconds in enumerate((2, 2, 4, 4), 1)]
    same = [timed("nvme", "unpatched", 2, repetition=number) for number in (1, 2)]
    (views,) = tables(*base, *same)
    _, _, row, *_ = devices_to_table(views).splitlines()
    assert row == "| writes | 3.000 | 1.00 |"


def test_what_stands_below_is_about_seconds_too() -> None:
    boots = [timed("nvme", "off", seconds, repetition=number) for number, seconds in enumerate((1, 1, 2), 1)]
    (views,) = tables(*boots)
    assert devices_to_table(views).endswith("Boots of a row differ by up to 100 %, by 50 % in the median.\n")


def test_what_was_not_measured_is_blank_and_has_no_column_if_that_is_so_in_all_cells() -> None:
    (views,) = tables(timed("nvme", "off", 2), timed("hdd", "off", 3, cell={"case": "parts"}))
    head, _, *rows = devices_to_table(views).splitlines()
    assert head == "| cell | seconds of off: nvme | seconds of off: hdd |"
    assert rows[:2] == ["| writes | 2.000 |  |", "| parts |  | 3.000 |"]


def test_other_kernels_and_the_other_lru_have_columns_too() -> None:
    (views,) = tables(
        timed("nvme", "off-mglru", 2),
        timed("nvme", "adaptive-mglru", 1),
        timed("nvme", "debian:7.3", 3, named="debian:7.3"),
    )
    head, _, row, *_ = devices_to_table(views).splitlines()
    assert (
        head == "| cell | seconds: nvme | price: nvme | seconds of off-mglru: nvme | debian:7.3 over off-mglru: nvme |"
    )
    assert row == "| writes | 0.50 | 1.00 | 2.000 | 1.50 |"


def test_where_rules_were_not_switched_off_the_window_stands_beside_an_unpatched_kernel() -> None:
    (views,) = tables(timed("nvme", "unpatched", 2), timed("nvme", "adaptive", 1))
    head, _, row, *_ = devices_to_table(views).splitlines()
    assert head == "| cell | seconds: nvme | price: nvme | seconds of unpatched: nvme |"
    assert row == "| writes | 0.50 | 1.00 | 2.000 |"


def test_scales_have_tables_of_their_own() -> None:
    found = tables(*(timed(device, "off", 2, scale=scale) for scale in ("quick", "full") for device in ("hdd", "nvme")))
    assert [[view.group.scale for view in views] for views in found] == [["quick"] * 2, ["full"] * 2]


def test_without_timed_disks_there_is_no_table() -> None:
    with pytest.raises(NoResult, match="on timed disks"):
        tables(timed("", "off", 9))


def test_what_all_cells_share_is_said_once() -> None:
    cells = [{"case": "parts", "form": form, "read_ahead_kb": 128} for form in ("places", "random")]
    (views,) = tables(*(timed("nvme", "off", 2, cell=cell) for cell in cells))
    head, _, *rows = devices_to_table(views).splitlines()
    assert head == "| cell, read_ahead_kb 128 | seconds of off: nvme |"
    assert [row.split(" | ")[0] for row in rows[:2]] == ["| parts, form places", "| parts, form random"]


def test_readers_of_readme_see_seconds_without_and_with_the_window_under_plain_titles() -> None:
    (views,) = tables(
        timed("hdd", "off", 8),
        timed("hdd", "adaptive", 4),
        timed("nvme", "off", 0.02),
        timed("nvme", "adaptive", 0.03),
        timed("nvme", "off", 1, cell={"case": "protect", "form": "4k", "read_ahead_kb": 128}),
    )
    head, _, *rows = document_table(seconds_columns(views)).splitlines()
    assert head == "| seconds | NVMe | hard disk |"
    assert rows == [
        "| writes to random pages | 0.020 → 0.030 | 8.000 → 4.000 |",
        "| protect, form 4k, read_ahead_kb 128 |  |  |",
    ]

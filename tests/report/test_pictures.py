# SPDX-License-Identifier: GPL-2.0-only
"""What pictures show: titles, how many marks, and where they are."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from foliolab.analyse.losses import make_pairs
from foliolab.experiment.load import find_experiment
from foliolab.report.devices import by_device
from foliolab.report.losses import loss_columns
from foliolab.report.pictures import losses_picture, reads_picture, regret_picture, times_picture
from foliolab.report.reads import Panel, Reads, RecordedReads, Stretch
from foliolab.report.view import make_views
from foliolab.simulate.suite import GROUPS
from tests.analyse.matrix import boots, matrix
from tests.samples import sample

MIB = 1 << 20
RECORDED = RecordedReads(
    panels=(
        Panel("Linux 6.12", Reads(120, tuple(Stretch(fault, fault * MIB, 4 * MIB) for fault in range(100)))),
        Panel("ours", Reads(110, tuple(Stretch(fault, fault * MIB, 4096) for fault in range(110)))),
    ),
    file_bytes=128 * MIB,
    touched_bytes=MIB,
    kernel="k1",
    code="t1",
    backend="qemu-tcg",
)


def data(line: Line2D) -> list[list[float]]:
    """Its points."""
    found: list[list[float]] = np.asarray(line.get_xydata(), float).tolist()
    return found


def labels(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_yticklabels()]


def test_reads_have_a_mark_each_as_high_as_they_are_long() -> None:
    found = reads_picture(RECORDED)
    assert found.title == "Windows of 4 MiB, 1.0 MiB touched: Linux 6.12 reads 400.0 MiB, ours 0.4 MiB"
    before, after = found.figure.axes
    assert before.get_title("left") == "Linux 6.12: 400.0 MiB, read by 99 of 120 faults"
    for axes, number, high in ((before, 100, 4.0), (after, 110, 0.006 * 128)):
        (_, top), (_, bottom), *others = data(axes.lines[0])
        assert 2 + len(others) == 3 * number
        assert bottom - top == pytest.approx(high)


def test_times_have_a_mark_for_each_cell_and_disk() -> None:
    samples = [
        sample(
            experiment="reports", backend="qemu-icount", cell={"case": case}, variant=variant, device=device,
            metrics={"price_bytes": 1, "seconds": seconds}, parameters={"device": device}, repetition=boot,
        )
        for boot in range(1, 7)
        for case, device, variant, seconds in (
            ("writes", "hdd", "off", 8), ("writes", "hdd", "adaptive", 4), ("snapshot", "hdd", "adaptive", 4),
            ("writes", "nvme", "off", 2), ("writes", "nvme", "adaptive", 3),
            ("snapshot", "nvme", "off", 2), ("snapshot", "nvme", "adaptive", 1.9 if boot > 1 else 2.1),
        )
    ]  # fmt: skip
    (views,) = by_device(make_views(samples, {"reports": find_experiment("reports")}))
    found = times_picture(views, "times")
    # One of six boots says the opposite of snapshots.
    assert found.title == "1 of 3 times are shown to be shorter with the adaptive window, 1 to be longer"
    axes = found.figure.axes[0]
    rows = {label: number for number, label in enumerate(labels(axes))}
    marks = {str(line.get_label()): data(line) for line in axes.lines[1:]}
    restored, written = rows["snapshots are restored"], rows["writes to random pages"]
    assert sorted(marks["NVMe"]) == [[0.95, restored], [1.5, written]]
    assert marks["hard disk"] == [[0.5, written]]


def test_regrets_have_a_line_for_each_policy_and_a_place_for_each_group() -> None:
    policies = {"adaptive": 1.0, "first-steps": 1.5, "off": 2.0, "linux-7.3": 3.0, "xnu": 4.0, "fixed-4": 5.0}
    regrets = [
        {"group": group, "variant": variant, "time_percentiles": [times + number] * 101}
        for number, group in enumerate(GROUPS)
        for variant, times in policies.items()
    ]
    axes = regret_picture(regrets, "regret").figure.axes
    titles = [each.get_title("left") for each in axes]
    assert titles == ["access patterns", "later patterns", "traces of stores", "cases that users reported"]
    for number, each in enumerate(axes):
        *lines, best = each.lines
        assert [data(line)[100] for line in lines] == [[100, times + number] for times in (1, 1.5, 2, 3, 4)]
        assert [y for _, y in data(best)] == [1, 1]


def test_losses_have_a_row_for_each_workload_with_its_interval() -> None:
    off, adaptive = [{"major_faults": 10_000 + boot} for boot in range(10)], [15_000 + 2 * boot for boot in range(10)]
    samples = [*boots("off", *off), *boots("adaptive", *({"major_faults": faults} for faults in adaptive))]
    axes = losses_picture(matrix(*samples, metrics=["major_faults"], repeats=False), "workloads").figure.axes[0]
    assert labels(axes) == ["gcc, major faults"]
    zero, interval, mark = axes.lines
    assert [x for x, _ in data(zero)] == [0, 0]
    ((loss, row),) = data(mark)
    (low, _), (high, _) = data(interval)
    assert (row, low < loss < high) == (0, True)
    assert loss == pytest.approx(50, abs=0.1)
    assert mark.get_fillstyle() == "full"


def test_a_loss_that_too_few_boots_show_is_hollow_as_tables_have_it_in_parentheses() -> None:
    few = matrix(
        *boots("off", *({"major_faults": 10_000 + boot} for boot in range(3))),
        *boots("adaptive", *({"major_faults": 15_000 + boot} for boot in range(3))),
        metrics=["major_faults"],
        repeats=False,
    )
    assert "(+50.0 %)" in {*loss_columns(few, make_pairs(few))[5].cells}
    *_, mark = losses_picture(few, "workloads").figure.axes[0].lines
    assert mark.get_fillstyle() == "none"

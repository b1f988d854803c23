# SPDX-License-Identifier: GPL-2.0-only
"""What pictures show: titles, how many marks, and where they are."""

import itertools
from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from foliohost.report.heatmap import heatmap
from foliolab.analyse.differences import Change, Difference, MatrixPart
from foliolab.analyse.losses import Matrix
from foliolab.campaign.store import open_store
from foliolab.cli.main import main
from foliolab.errors import NoResult, UsageError
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.report.devices import by_device
from foliolab.report.pictures import cost_picture, losses_pictures, reads_picture, times_picture, touches_picture
from foliolab.report.reads import Panel, Reads, RecordedReads, Stretch
from foliolab.report.svg import Picture
from foliolab.report.view import make_views
from foliolab.trace.format import Trace, TraceFile
from tests.samples import sample
from tests.simulate.small import row

MIB = 1 << 20
RECORDED = RecordedReads(
    panels=(
        Panel("Linux 6.12", Reads(120, tuple(Stretch(fault, fault * MIB, 4 * MIB) for fault in range(100)))),
        Panel("ours", Reads(110, tuple(Stretch(fault, fault * MIB, 4096) for fault in range(110)))),
    ),
    file_bytes=128 * MIB,
    touched_bytes=MIB,
    remark="",
    kernel="k1",
    code="t1",
    backend="qemu-tcg",
)
TRACE = Trace(
    files=(TraceFile("data <1> & more", 512), TraceFile("other", 4)),
    file_of=array("I", [0, 0, 1, 0, 0, 0, 0, 0]),
    page_of=array("I", [0, 0, 3, 511, 255, 256, 256, 256]),
    window=16,
    other={"times_ms": [0, 1000, 1000, 5000], "live": {"reads": True}},
)


def difference(workload: str, metric: str, value: float, change: Change, **others: Any) -> Difference:
    """Of a baseline of 1,000."""
    found = Difference(
        experiment="workloads",
        cell=Cell.of({"workload": workload}),
        workload=workload,
        variant="adaptive",
        metric=metric,
        baseline=1000,
        value=value,
        loss=value / 1000 - 1,
        interval=None,
        negligible=0.064,
        repeats=False,
        p=0.25,
        n=6,
        change=change,
    )
    return replace(found, **others)


def losses(differences: Sequence[Difference]) -> Picture:
    ordered = tuple(sorted(differences, key=lambda each: list(Change).index(each.change)))
    part = MatrixPart(find_experiment("workloads"), "quick", "x86_64", 4096, (), ("adaptive",), None)
    (found,) = losses_pictures(Matrix((part,), "off", ("adaptive",), 0.02, ordered, (), ()), "losses")
    return found


def data(line: Line2D) -> list[list[float]]:
    """Its points."""
    found: list[list[float]] = np.asarray(line.get_xydata(), float).tolist()
    return found


def points(axes: Axes, marker: str) -> list[list[float]]:
    """What is marked so, or drawn as a line with "None"; but for the line at 1."""
    return [point for line in axes.lines if line.get_marker() == marker for point in data(line) if point[0] != 1]


def labels(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_yticklabels()]


def test_reads_have_a_mark_each_as_high_as_they_are_long() -> None:
    found = reads_picture(RECORDED)
    assert found.title == "For 1.0 MiB of touched pages Linux 6.12 reads 400.0 MiB, ours 0.4 MiB"
    before, after = found.figure.axes
    assert before.get_title("left") == "Linux 6.12: 400.0 MiB, read by 99 of 120 faults"
    for axes, number, high in ((before, 100, 4.0), (after, 110, 0.006 * 128)):
        (_, top), (_, bottom), *others = data(axes.lines[0])
        assert 2 + len(others) == 3 * number
        assert bottom - top == pytest.approx(high)


def test_a_curve_of_costs_says_how_many_cells_cost_at_most_so_much() -> None:
    pairs = {"sparse": (40, 1), "dense": (1, 1), "mixed": (2, 1.02), "backward": (1, 1.8)}
    rows = [
        row(variant, regret, pattern, off=off)
        for pattern, (off, ours) in pairs.items()
        for variant, regret in (("off", off), ("adaptive", ours))
    ]
    found = cost_picture(rows)
    assert found.title == "In 75 % of 4 cells ours costs at most 1.05 times the best window, 1.80 at worst"
    curves = {str(line.get_label()): data(line) for line in found.figure.axes[0].lines}
    assert curves["the adaptive window"] == [[1, 0.5], [1.02, 0.75], [1.8, 1]]
    assert curves["Linux 6.12"] == [[1, 0.5], [2, 0.75], [40, 1]]


def test_a_workload_has_a_mark_for_what_decides_and_for_what_it_gains_besides() -> None:
    found = losses(
        [
            difference("one", "major_faults", 1250, Change.WORSE, interval=(0.2, 0.31)),
            difference("one", "refaults_file", 0, Change.BETTER, interval=(-1.0, -0.9)),
            difference("two", "faults", 1003, Change.SAME),
        ]
    )
    assert found.name == "losses-adaptive"
    assert found.title == "adaptive against off: 1 losses and 1 gains are shown, of 3 metrics"
    axes = found.figure.axes[0]
    assert labels(axes) == ["one: major faults", "two: faults", "one: refaults file"]
    assert points(axes, "o") == [[1.25, 0], [1.003, 1]]
    assert points(axes, "<") == [[0.01, 2]]
    assert np.array(points(axes, "None")) == pytest.approx(np.array([[1.2, 0], [1.31, 0], [0.01, 2], [0.1, 2]]))
    spelled = [text.get_text() for text in axes.child_axes[0].get_yticklabels()]
    assert spelled == ["+25.0 % (+20.0 to +31.0)", "+0.3 %", "-100.0 % (-100.0 to -90.0)"]


def test_of_many_marks_those_that_are_shown_and_the_greatest_are_drawn() -> None:
    little = [difference(f"little-{n}", "faults", 1000 + n, Change.SAME) for n in range(-50, 50, 2)]
    lost = [difference(f"lost-{n}", "faults", 1001, Change.WORSE) for n in range(5)]
    drawn = labels(losses([*lost, *little]).figure.axes[0])
    assert len(drawn) == 40
    assert {f"lost-{n}: faults" for n in range(5)} <= set(drawn)
    assert "little--50: faults" in drawn
    assert "little-0: faults" not in drawn


def test_times_have_a_mark_for_each_cell_and_disk() -> None:
    samples = [
        sample(
            experiment="reports", backend="qemu-icount", cell={"case": case}, variant=variant, device=device,
            metrics={"price_bytes": 1, "seconds": seconds}, parameters={"device": device},
        )
        for case, device, variant, seconds in (
            ("writes", "hdd", "off", 8), ("writes", "hdd", "adaptive", 4), ("snapshot", "hdd", "adaptive", 4),
            ("writes", "nvme", "off", 2), ("writes", "nvme", "adaptive", 3),
            ("snapshot", "nvme", "off", 2), ("snapshot", "nvme", "adaptive", 1.9),
        )
    ]  # fmt: skip
    (views,) = by_device(make_views(samples, {"reports": find_experiment("reports")}))
    found = times_picture(views, "times")
    assert found.title == "reports: 2 of 3 times are shorter with the adaptive window"
    axes = found.figure.axes[0]
    rows = {label: number for number, label in enumerate(labels(axes))}
    marks = {str(line.get_label()): data(line) for line in axes.lines[1:]}
    assert sorted(marks["nvme"]) == [[0.95, rows["snapshot"]], [1.5, rows["writes"]]]
    assert marks["hdd"] == [[0.5, rows["writes"]]]


def test_touches_are_as_large_as_the_cells_that_have_any() -> None:
    found = touches_picture(TRACE, 0, "a & b")
    assert found.title == "a & b: pages read of data <1> & more"
    axes = found.figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time, s", "place in the file, MiB")
    runs = [np.asarray(run) for patch in axes.patches for run in patch.get_path().to_polygons()]
    cells = sum(bool(cell) for line in heatmap(TRACE, 0, 175, 80).cells for cell in line)
    areas = [float(np.prod(np.ptp(run, axis=0))) for run in runs]
    assert sum(areas) == pytest.approx(cells * 5 / 175 * 2 / 80)


def test_an_experiment_has_its_own_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path))
    with open_store(tmp_path / "samples.jsonl") as store:
        for variant, faults in (("off", 1000), ("adaptive", 1500)):
            for number in range(1, 7):
                store.append(
                    sample(
                        cell={"workload": "hot-readahead"}, variant=variant, experiment="workloads", repetition=number,
                        backend="qemu-icount", metrics={"major_faults": faults + number, "faults": 2000},
                    )
                )  # fmt: skip
    assert main(["report", "workloads", "--pictures", str(tmp_path)]) == 0
    name = "losses-workloads-quick-x86_64-4k-qemu-icount-adaptive.svg"
    assert [file.name for file in tmp_path.glob("*.svg")] == [name]
    assert "adaptive against off: 1 losses" in (tmp_path / name).read_text()
    assert f"{tmp_path / name}: adaptive against off: 1 losses" in capsys.readouterr().err
    assert main(["report", "workloads", "--pictures", f"{tmp_path}/no"]) == UsageError.status
    assert f"--pictures: {tmp_path}/no is no directory." in capsys.readouterr().err
    for other in ("--check", "--again"):
        assert main(["report", "workloads", "--pictures", str(tmp_path), other]) == UsageError.status
    assert main(["report", "workloads", "--variant", "off", "--pictures", str(tmp_path)]) == NoResult.status
    assert "Nothing was measured that could be drawn." in capsys.readouterr().err


def test_disks_are_compared_where_both_variants_were_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six disks, more than there are colours, of which the last has one variant alone."""
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path))
    disks = ["nvme", "sata", "cloud", "hdd", "remote", "70,1,0,1"]
    with open_store(tmp_path / "samples.jsonl") as store:
        for disk, variant in itertools.product(disks, ("off", "adaptive")):
            if (disk, variant) != (disks[-1], "adaptive"):
                store.append(
                    sample(
                        cell={"case": "snapshot", "read_ahead_kb": 128}, variant=variant, experiment="reports",
                        backend="qemu-icount", device=disk, parameters={"device": disk},
                        metrics={"price_bytes": 1, "seconds": 2.0 if variant == "off" else 1.0},
                    )
                )  # fmt: skip
    assert main(["report", "reports", "--pictures", str(tmp_path)]) == 0
    (drawn,) = tmp_path.glob("times-*.svg")
    assert "reports: 5 of 5 times are shorter" in drawn.read_text()
    drawn.unlink()
    assert main(["report", "reports", "--variant", "off", "--pictures", str(tmp_path)]) == NoResult.status

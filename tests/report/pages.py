# SPDX-License-Identifier: GPL-2.0-only
"""A small page with one picture of each kind, and what it is made of."""

from foliolab.analyse.differences import Change, Difference
from foliolab.analyse.rows import group_samples
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.report.page.contents import make_contents
from foliolab.report.page.cost import change_drawing, cost_drawing
from foliolab.report.page.forest import forest_drawing
from foliolab.report.page.heat import heat_drawing
from foliolab.report.page.reads import reads_drawing
from foliolab.report.page.style import Drawing
from foliolab.report.picture import Panel, Picture, Reads, Stretch
from foliolab.simulate.rows import RegretRow
from tests.samples import sample
from tests.simulate.small import row

PICTURE = Picture(
    panels=(
        Panel("Linux 6.12", Reads(120, tuple(Stretch(fault, fault << 20, 4 << 20) for fault in range(100)))),
        Panel("ours", Reads(110, tuple(Stretch(fault, fault << 20, 4096) for fault in range(110)))),
    ),
    file_bytes=128 << 20,
    touched_bytes=1 << 20,
    remark="One <byte> each",
    kernel="k1",
    code="t1",
    backend="qemu-tcg",
)


def difference(
    workload: str,
    metric: str,
    baseline: float,
    value: float,
    change: Change,
    variant: str = "adaptive",
    interval: tuple[float, float] | None = (-1.0, 0.3),
    n: int = 3,
) -> Difference:
    return Difference(
        experiment="workloads",
        cell=Cell.of({"workload": workload}),
        workload=workload,
        variant=variant,
        metric=metric,
        baseline=baseline,
        value=value,
        loss=(value - baseline) / baseline,
        interval=interval,
        negligible=64 / baseline,
        repeats=False,
        p=0.25,
        n=n,
        change=change,
    )


LINES = [
    difference("mmap-random-exceeds", "major_faults", 1, 1.25, Change.WORSE, interval=(0.2, 0.31), n=6),
    difference(
        "fault-cost stride 16 count 6144 memory warm", "instructions_per_fault", 1, 1.003, Change.SAME, interval=None
    ),
    *(
        difference(f"workload-{number}", "refaults_file", 17, 17 - number, Change.BETTER, interval=None, n=6)
        for number in range(1, 18)
    ),
]


def regrets() -> list[RegretRow]:
    """Four cells of a pattern each: ours is 1.0, 1.0, 1.02 and 1.8 times the best, off 40, 1, 2 and 1."""
    pairs = {"sparse": (40, 1), "dense": (1, 1), "trace:lmdb-mixed": (2, 1.02), "objects-24-backward": (1, 1.8)}
    return [
        row(variant, regret, pattern, off=pair[0])
        for pattern, pair in pairs.items()
        for variant, regret in zip(("off", "adaptive"), pair, strict=True)
    ]


def drawings() -> list[Drawing]:
    rows = regrets()
    return [
        reads_drawing(PICTURE),
        cost_drawing(rows, "policy p1"),
        change_drawing(rows, "policy p1"),
        heat_drawing(rows, "policy p1"),
        forest_drawing("forest", "workloads", LINES, "off", "kernel k1", "./lab compare"),
    ]


def page() -> str:
    workloads = [
        sample(cell={"workload": "hot-readahead"}, variant=variant, experiment="workloads", backend="qemu-icount",
               repetition=repetition, metrics={"major_faults": faults, "refaults": 10, "instructions": 1000})
        for variant, faults in (("off", 1000), ("adaptive", 1500))
        for repetition in (1, 2, 3)
    ]  # fmt: skip
    return make_contents(
        PICTURE, regrets(), "p1", group_samples(workloads), {"workloads": find_experiment("workloads")}
    )

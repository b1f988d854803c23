# SPDX-License-Identifier: GPL-2.0-only
"""What is on the page of this checkout: every drawing whose data is there, and a sentence for every other one."""

from collections.abc import Mapping, Sequence

from foliolab.analyse.differences import MatrixPart
from foliolab.analyse.losses import make_matrix
from foliolab.analyse.rows import BASES
from foliolab.analyse.select import Group
from foliolab.campaign.sample import MODEL
from foliolab.experiment.spec import Experiment
from foliolab.regret.rows import RegretRow
from foliolab.report.page.cost import change_drawing, cost_drawing
from foliolab.report.page.forest import forest_drawing, make_lines
from foliolab.report.page.heat import heat_drawing
from foliolab.report.page.page import make_page
from foliolab.report.page.reads import reads_drawing
from foliolab.report.page.style import Drawing
from foliolab.report.picture import Picture

_TITLE = "foliolab: what Linux reads of mapped files, and what this kernel reads"
_LEAD = (
    "A program touches single pages of a mapped file that is larger than memory; for each of them Linux reads a "
    "window. This kernel reads what has paid in that file. Where that loses, it is shown as well."
)
_JUDGED = {"adaptive": BASES, "adaptive-mglru": ("unpatched-mglru", "off-mglru")}
"""Variants with workloads, and the first of these that was measured beside them."""
_THRESHOLD = 0.02


def make_contents(
    picture: Picture | None,
    rows: Sequence[RegretRow],
    policy: str,
    groups: Sequence[Group],
    experiments: Mapping[str, Experiment],
) -> str:
    """The page. ``policy`` is the hash of what the rows were made by."""
    drawings: list[Drawing] = []
    missing: list[str] = []
    if picture:
        drawings.append(reads_drawing(picture))
    else:
        missing.append("What a kernel reads of a file was not recorded here: ./lab demo --picture FILE does.")
    source = f"the model of the page cache, policy {policy}; it repeats exactly"
    drawings += [cost_drawing(rows, source), change_drawing(rows, source), heat_drawing(rows, source)]
    forests = _forests(groups, experiments)
    if not forests:
        missing.append("Workloads were not measured here: ./lab regress does.")
    return make_page(_TITLE, _LEAD, [*drawings, *forests], missing)


def _forests(groups: Sequence[Group], experiments: Mapping[str, Experiment]) -> list[Drawing]:
    """One for each machine and experiment with workloads."""
    drawings = []
    for number, group in enumerate(groups):
        experiment = experiments.get(group.experiment)
        if not experiment or not experiment.regress or group.backend == MODEL or group.scale not in experiment.scales:
            continue
        measured = {sample.variant: sample.kernel.hash for sample in group.samples}
        scale = experiment.scale(group.scale)
        for judged, bases in _JUDGED.items():
            baseline = next((name for name in bases if name in measured), None)
            if baseline is None or judged not in measured:
                continue
            part = MatrixPart(experiment, scale.name, group.arch, group.page_size, scale.cells, (judged,), group)
            if lines := make_lines(make_matrix([part], baseline=baseline, threshold=_THRESHOLD), judged):
                what = f"{experiment.name} on {group.machine}"
                source = f"{group.backend}, scale {group.scale}, {judged}, kernel {measured[judged]}"
                words = ["./lab regress", experiment.name, f"--variant {judged} --baseline {baseline}", *group.options]
                name = f"forest-{number}-{judged}"
                drawings.append(forest_drawing(name, what, lines, baseline, source, " ".join(words)))
    return drawings

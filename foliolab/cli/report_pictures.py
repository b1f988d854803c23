# SPDX-License-Identifier: GPL-2.0-only
"""What 'report' does with --pictures: one SVG file for each."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from foliohost.cli.heatmap import chosen
from foliolab.analyse.differences import MatrixPart
from foliolab.analyse.losses import make_matrix
from foliolab.analyse.rows import BASES, Group
from foliolab.campaign.sample import MODEL, Sample
from foliolab.device import load_devices
from foliolab.errors import NoResult
from foliolab.experiment.load import find_experiment
from foliolab.experiment.spec import Experiment
from foliolab.files import TRACES, write_atomic
from foliolab.progress import Reporter
from foliolab.report.devices import by_device
from foliolab.report.pictures import cost_picture, losses_pictures, reads_picture, times_picture, touches_picture
from foliolab.report.reads import READS, RecordedReads, recorded_reads
from foliolab.report.svg import Picture, to_svg
from foliolab.report.view import View, make_views
from foliolab.simulate.rows import make_rows
from foliolab.simulate.suite import Case, TraceCase, load_suite, trace_cases
from foliolab.trace.format import read_trace

_TIMES = Path("docs/times.svg")
"""The picture of times by device, in the repository."""
_REPORTS, _WINDOW_KB = "reports", 128
"""What the second is of: an experiment, with the default window."""
_JUDGED = {"adaptive": BASES, "adaptive-mglru": ("unpatched-mglru", "off-mglru")}
"""Variants whose losses are drawn, and the baseline: the first of these that was measured beside them."""
_THRESHOLD = 0.02


def write_pictures(pictures: Iterator[Picture], directory: Path) -> None:
    """Each under its name, which is said; NoResult if there are none."""
    some = False
    for picture in pictures:
        file = directory / f"{picture.name}.svg"
        write_atomic(file, to_svg(picture).encode(errors="replace"))  # names of files can be any bytes
        Reporter().say(f"{file}: {picture.title}.")
        some = True
    if not some:
        raise NoResult("Nothing was measured that could be drawn.")


def of_samples(views: Sequence[View], experiments: Mapping[str, Experiment]) -> Iterator[Picture]:
    """Losses and gains of workloads, and times of disks."""
    for view in views:
        experiment = experiments.get(view.group.experiment)
        if experiment and experiment.compared and view.group.backend != MODEL:
            yield from _losses(view.group, experiment)
    if any(view.group.device for view in views):
        for alike in by_device(views):
            group = alike[0].group
            with suppress(NoResult):  # of one variant alone there is nothing to compare
                yield times_picture(alike, f"times-{group.experiment}-{group.scale}-{group.machine}-{group.backend}")


def _losses(group: Group, experiment: Experiment) -> Iterator[Picture]:
    if group.scale not in experiment.scales:
        return
    cells = experiment.scale(group.scale).cells
    measured = {sample.variant for sample in group.samples}
    place = group.experiment, group.scale, group.machine, group.backend, group.device, group.timed_on
    for variant, bases in _JUDGED.items():
        baseline = next((name for name in bases if name in measured), None)
        if baseline and variant in measured:
            part = MatrixPart(experiment, group.scale, group.arch, group.page_size, cells, (variant,), group)
            matrix = make_matrix([part], baseline=baseline, threshold=_THRESHOLD)
            yield from losses_pictures(matrix, "-".join(("losses", *filter(None, place))))


def of_all_else(recorded: Path) -> Iterator[Picture]:
    """What faults read, if that file has it, what ways to read cost in the model, and touches of all traces."""
    if reads := recorded_reads(recorded):
        yield reads_picture(reads)
    suite = load_suite()
    traces = sorted(TRACES.glob("*.trace"))
    cases: list[Case | TraceCase] = [*suite.cases, *trace_cases(traces)]
    yield cost_picture(make_rows(suite, cases, [*load_devices().values()], Reporter()))
    for file in traces:
        trace = read_trace(file)
        yield touches_picture(trace, chosen(trace, file, None), file.stem)


def of_documents(reads: RecordedReads | None, samples: Sequence[Sample]) -> dict[Path, str]:
    """What pictures of documents are, of what is shipped."""
    reports = [
        each
        for each in samples
        if each.experiment == _REPORTS and each.device and each.cell["read_ahead_kb"] == _WINDOW_KB
    ]
    found = {READS: to_svg(reads_picture(reads))} if reads else {}
    if reports:
        (disks,) = by_device(make_views(reports, {_REPORTS: find_experiment(_REPORTS)}))
        found[_TIMES] = to_svg(times_picture(disks, _TIMES.stem))
    return found

# SPDX-License-Identifier: GPL-2.0-only
"""What somebody asks to be compared: found in experiments, measured as far as the store lacks it, or taken from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from foliolab.analyse.differences import MatrixPart, workload_name
from foliolab.analyse.rows import group_of, ordered
from foliolab.arch import Bytes, applies, machine_name
from foliolab.campaign.measure import Request, measure
from foliolab.campaign.runner import Workers
from foliolab.campaign.sample import MODEL, Sample
from foliolab.device import device_of
from foliolab.errors import EmptyPart, UnknownCell, UsageError, require_known
from foliolab.experiment import variants
from foliolab.experiment.cell import Cell, choose
from foliolab.experiment.load import experiment_names, find_experiment
from foliolab.experiment.spec import Experiment
from foliolab.progress import say

_BASELINE = "unpatched"


@dataclass(frozen=True)
class Question:
    """What is compared with what, and where."""

    baseline: str
    asked: Sequence[str]
    """The variants that are compared with it; none are those that the experiments name."""
    arch: str
    page_size: Bytes
    device: str | None
    """Of which kind disks are that take time, as ``device_of`` takes it."""

    def parts(
        self, names: Sequence[str], scale: str, cells: Sequence[str], workloads: Sequence[str]
    ) -> list[MatrixPart]:
        """What to measure of experiments; whatever is wrong with it is found here, before a measurement."""
        parts = []
        machine = machine_name(self.arch, self.page_size)
        for experiment in _experiments(names):
            if self.device and not names and not experiment.reads_data:
                continue  # one that is named is refused when it is planned
            if not applies(experiment.machines, machine):
                say(f"{experiment.name} is for {', '.join(experiment.machines)} only.")
                continue
            found = experiment.scale(scale)
            asked = self.asked or [variant.name for variant in found.variants if variant.name != self.baseline]
            if self.device:
                experiment = replace(experiment, compared=tuple(dict.fromkeys((*experiment.compared, "seconds"))))
            place = (experiment, found.name, self.arch, self.page_size)
            parts.append(MatrixPart(*place, found.cells, tuple(asked), None))
        if not parts:
            raise UsageError(f"There is no experiment with a list 'compared' for {machine}.")
        # A filter may match cells of some parts only.
        wanted = set(choose([cell for part in parts for cell in part.cells], cells))
        parts = _only(parts, lambda part, cell: cell in wanted)
        known = dict.fromkeys(workload_name(part.experiment, cell) for part in parts for cell in part.cells)
        require_known("There is no workload", workloads, known, UnknownCell)
        return _only(parts, lambda part, cell: not workloads or workload_name(part.experiment, cell) in workloads)

    def from_store(self, part: MatrixPart, stored: Sequence[Sample]) -> MatrixPart:
        """The part with what was measured last; all variants of that unless some were asked for."""
        disk = device_of(self.device).name if self.device else ""
        place = (part.experiment.name, part.scale, part.arch, part.page_size, "lab", disk)
        mine = [
            each
            for each in stored
            if (each.experiment, each.scale, each.arch, each.page_size, each.profile, each.device) == place
            and each.backend != MODEL
        ]
        if not mine:
            return replace(part, variants=tuple(self.asked))
        group = group_of(mine[-1], mine)
        here = [each.variant for each in group.samples if Cell.of(each.cell) in part.cells]
        measured = (name for name in here if name == variants.first_name(name))
        names = self.asked or [name for name in ordered(measured, part.variants) if name != self.baseline]
        return replace(part, group=group, variants=tuple(names))


def choose_variants(names: Sequence[str], baseline: str | None, kernels: Sequence[str]) -> tuple[str, list[str]]:
    """The baseline, and what was asked for beside it; empty if nothing was."""
    known = variants.load_variants()
    if kernels:
        there = {one.name: one for one in variants.on_kernels(variants.choose(names, known), kernels, asked=True)}
        baseline = next(iter(there)) if baseline is None else baseline
        (found,) = variants.choose([baseline], there)
        asked = [name for name in there if name != baseline]
    else:
        found, *others = variants.choose([_BASELINE if baseline is None else baseline, *names], known)
        asked = [variant.name for variant in others]
    if (names or kernels) and not asked:
        raise UsageError(f"'{found.name}' is the baseline; there is no other variant to compare with it.")
    return found.name, asked


def measured(
    parts: Sequence[MatrixPart], request: Callable[[MatrixPart], Request], workers: Workers
) -> tuple[list[MatrixPart], list[Sample]]:
    """The parts with all that their requests want, and the samples of that, also of what failed."""
    found, samples = [], []
    for part in parts:
        try:
            collected = measure(request(part), workers)
        except EmptyPart as error:
            say(str(error))
            continue
        found.append(replace(part, group=group_of(collected.samples[0], collected.stored)))
        samples += collected.samples
    if not found:
        raise EmptyPart("No experiment has a boot in this part.")
    return found, samples


def _only(parts: Sequence[MatrixPart], kept: Callable[[MatrixPart, Cell], bool]) -> list[MatrixPart]:
    """The parts with the cells that are kept; those without any are left out."""
    chosen = [replace(part, cells=tuple(cell for cell in part.cells if kept(part, cell))) for part in parts]
    return [part for part in chosen if part.cells]


def _experiments(names: Sequence[str]) -> list[Experiment]:
    found = {experiment.name: experiment for experiment in map(find_experiment, names or experiment_names())}
    for name in names and found:
        if not found[name].compared:
            raise UsageError(f"{name} has no list 'compared' of the metrics by which a variant can be worse.")
    return [experiment for experiment in found.values() if experiment.compared]

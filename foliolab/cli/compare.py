# SPDX-License-Identifier: GPL-2.0-only
"""Tell which workloads get worse under a variant or a kernel than under a baseline, the worst first. They are the cells
of all experiments that have a list 'compared' of metrics. What the store has already is not measured again.

example: ./lab compare --variant published,adaptive --workload gcc,sqlite --check
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from foliolab.analyse.differences import MatrixPart, workload_name
from foliolab.analyse.losses import make_matrix
from foliolab.analyse.rows import group_of, ordered
from foliolab.arch import applies, machine_name
from foliolab.campaign.measure import Request, measure
from foliolab.campaign.runner import Workers, failure_of
from foliolab.campaign.sample import MODEL, Sample
from foliolab.campaign.store import read_samples, store_file
from foliolab.cli import options
from foliolab.device import device_of
from foliolab.errors import EmptyPart, UnknownCell, UsageError, require_known
from foliolab.experiment import variants
from foliolab.experiment.cell import Cell, choose
from foliolab.experiment.load import experiment_names, find_experiment
from foliolab.experiment.spec import Experiment
from foliolab.progress import say
from foliolab.report import losses
from foliolab.report.markdown import matrix_to_table, to_markdown
from foliolab.report.section import of_matrix
from foliolab.report.terminal import print_section, terminal
from foliolab.reproduce.released import read_released

_DEFAULT = "adaptive"
"""The variant that --check judges unless others are asked for: the kernel as it boots."""
_BASELINE = "unpatched"


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "only these: names, or paths of .toml files (default: all of the lab's that have a list 'compared')"
    parser.add_argument("experiment", nargs="*", help=text)
    parser.add_argument("--variant", metavar="V,...", help="only these (default: those that the experiments name)")
    options.add_kernels(
        parser, "compare kernels: the others with the first, as they boot unless --variant says otherwise"
    )
    text = "what is compared with, measured twice (default: unpatched, or the first kernel)"
    parser.add_argument("--baseline", metavar="V", help=text)
    parser.add_argument("--workload", metavar="NAME,...", action="append", help="only these; may be repeated")
    options.add_cells(parser)
    options.add_sizes(parser)
    options.add_device(parser)
    options.add_machine(parser)
    options.add_workers(parser)
    text = "what a loss has to be above to count (default: 2%%)"
    parser.add_argument("--threshold", metavar="PERCENT", type=_share, default=0.02, help=text)
    parser.add_argument("--no-run", action="store_true", help="measure nothing: compare what the store has")
    text = "measure nothing: compare what is in release/, behind README and docs"
    parser.add_argument("--released", action="store_true", help=text)
    parser.add_argument("--all", action="store_true", help="list all metrics, not the one that decides")
    form = parser.add_mutually_exclusive_group()
    options.add_tables(form)
    options.add_json(form, '{"rows": [...], "again": [...]}, all metrics,')
    text = "exit with 1 if a variant that was asked for loses anything that counts, or if boots are too few to tell"
    text += f" what looks so; without --variant, if {_DEFAULT} does"
    parser.add_argument("--check", action="store_true", help=text)


def _share(text: str) -> float:
    """0.02 for "2%"."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not text.endswith("%") or not 0 <= share < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no percentage such as 2%")
    return share


def handle(arguments: argparse.Namespace) -> int:
    arch, page_size = options.machine(arguments)
    names = options.names_of("--variant", arguments.variant)
    baseline, asked = _variants(names, arguments.baseline, arguments.kernels)
    if arguments.check and not asked and baseline == _DEFAULT:
        raise UsageError(f"--check judges {_DEFAULT}, which is the baseline; say with --variant what else to judge.")
    parts = _chosen(_parts(arguments, arch.name, page_size, baseline, asked), arguments.workload)
    samples: list[Sample] = []
    stored = read_released() if arguments.released else read_samples(store_file()) if arguments.no_run else None
    if stored is not None:
        parts = [_from_store(part, stored, asked, baseline, arguments.device) for part in parts]
    if arguments.check and not asked:  # it is judged, also where the experiment does not name it
        parts = [replace(part, variants=tuple(dict.fromkeys((*part.variants, _DEFAULT)))) for part in parts]
    if stored is None:
        with options.workers(arguments) as found:
            parts, samples = _measured(parts, baseline, names, arguments, found)
        if not parts:
            raise EmptyPart("No experiment has a boot in this part.")
    matrix = make_matrix(parts, baseline=baseline, threshold=arguments.threshold)
    if arguments.json:
        print(json.dumps(losses.to_json(matrix), indent=1))
    elif arguments.table:
        print(matrix_to_table(matrix), end="")
    elif arguments.markdown:
        print(to_markdown(of_matrix(matrix, everything=arguments.all)), end="")
    else:
        print_section(terminal(), of_matrix(matrix, everything=arguments.all))
    if error := failure_of(samples):
        raise error
    if arguments.check:
        losses.check(matrix, asked or [_DEFAULT])
    return 0


def _variants(names: Sequence[str], baseline: str | None, kernels: Sequence[str]) -> tuple[str, list[str]]:
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


def _parts(
    arguments: argparse.Namespace, arch: str, page_size: int, baseline: str, asked: Sequence[str]
) -> list[MatrixPart]:
    """What to measure; whatever is wrong with it is found here, before a measurement."""
    parts = []
    machine = machine_name(arch, page_size)
    for experiment in _experiments(arguments.experiment):
        if not applies(experiment.machines, machine):
            say(f"{experiment.name} is for {', '.join(experiment.machines)} only.")
            continue
        scale = experiment.scale(arguments.scale)
        names = asked or [variant.name for variant in scale.variants if variant.name != baseline]
        if arguments.device:
            experiment = replace(experiment, compared=tuple(dict.fromkeys((*experiment.compared, "seconds"))))
        parts.append(MatrixPart(experiment, scale.name, arch, page_size, scale.cells, tuple(names), None))
    if not parts:
        raise UsageError(f"There is no experiment with a list 'compared' for {machine}.")
    # A filter may match cells of some parts only.
    wanted = set(choose([cell for part in parts for cell in part.cells], arguments.cell))
    return _only(parts, lambda part, cell: cell in wanted)


def _chosen(parts: Sequence[MatrixPart], workloads: Sequence[str] | None) -> list[MatrixPart]:
    """The parts with the workloads of these names only; all without any."""
    if not workloads:
        return list(parts)
    known = dict.fromkeys(workload_name(part.experiment, cell) for part in parts for cell in part.cells)
    wanted = [name for text in workloads for name in options.names_of("--workload", text)]
    require_known("There is no workload", wanted, known, UnknownCell)
    return _only(parts, lambda part, cell: workload_name(part.experiment, cell) in wanted)


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


def _measured(
    parts: Sequence[MatrixPart], baseline: str, names: Sequence[str], arguments: argparse.Namespace, workers: Workers
) -> tuple[list[MatrixPart], list[Sample]]:
    """The parts with all that they want, and the samples of that, also of what failed."""
    measured, samples = [], []
    for part in parts:
        request = Request(
            experiment=part.experiment,
            scale=part.scale,
            variants=names if arguments.kernels else [baseline, *part.variants],
            kernels=arguments.kernels,
            again=baseline,
            cells=part.cells,
            repetitions=arguments.repetitions,
            arch=part.arch,
            page_size=part.page_size,
            device=arguments.device,
            shard=arguments.shard or (1, 1),
        )
        try:
            found = measure(request, workers)
        except EmptyPart as error:
            say(str(error))
            continue
        measured.append(replace(part, group=group_of(found.samples[0], found.stored)))
        samples += found.samples
    return measured, samples


def _from_store(
    part: MatrixPart, stored: Sequence[Sample], asked: Sequence[str], baseline: str, device: str | None
) -> MatrixPart:
    """The part with what was measured last; all variants of that unless some were asked for."""
    disk = device_of(device).name if device else ""
    place = (part.experiment.name, part.scale, part.arch, part.page_size, "lab", disk)
    mine = [
        each
        for each in stored
        if (each.experiment, each.scale, each.arch, each.page_size, each.profile, each.device) == place
        and each.backend != MODEL
    ]
    if not mine:
        return replace(part, variants=tuple(asked))
    group = group_of(mine[-1], mine)
    here = [each.variant for each in group.samples if Cell.of(each.cell) in part.cells]
    measured = (name for name in here if name == variants.first_name(name))
    names = asked or [name for name in ordered(measured, part.variants) if name != baseline]
    return replace(part, group=group, variants=tuple(names))

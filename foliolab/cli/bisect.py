# SPDX-License-Identifier: GPL-2.0-only
"""Find the commit of a git tree that changed a figure of an experiment. Commits between a good and a bad one are
built, booted and measured. Each takes as many boots as chance makes necessary; a commit that cannot be judged is
passed over. Killed at any moment, the same command goes on where it was.

example: ./lab bisect --good ~/linux@v6.12 --bad ~/linux@HEAD sparse-mmap --cell pattern=random --metric read_bytes
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from foliolab.campaign.runner import failure_of
from foliolab.campaign.sample import LOST_HOST, Sample
from foliolab.campaign.search import MOST_BOOTS, JudgedCommit, Search
from foliolab.cli.options import add_accelerator, add_json, add_machine, machine
from foliolab.cli.run import RunRequest, measure, require_counting
from foliolab.errors import NoResult, UnknownCell, UsageError, require_known
from foliolab.experiment import cell as cells
from foliolab.experiment import variants
from foliolab.experiment.load import find_experiment
from foliolab.experiment.metrics import METRICS, Metric, figure
from foliolab.kernel.git import Repository
from foliolab.kernel.name import OURS, KernelName, parse_name
from foliolab.progress import Reporter
from foliolab.report.columns import UNITS


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="its name, or the path of a .toml file")
    parser.add_argument("--good", metavar="TREE@REF", required=True, help="a kernel as it was; +SERIES as anywhere")
    parser.add_argument("--bad", metavar="TREE@REF", required=True, help="a later one of the same tree")
    parser.add_argument("--cell", metavar="AXIS=VALUE,...", action="append", default=[], help="the one to measure")
    parser.add_argument("--metric", metavar="NAME", help="the figure (default: what the experiment is about)")
    parser.add_argument("--variant", metavar="V", help="of ours, for trees that have it (default: as the kernel boots)")
    parser.add_argument("--scale", default="quick", help="of the experiment (default: quick)")
    parser.add_argument(
        "--repetitions", metavar="N", type=int, default=MOST_BOOTS, help=f"boots of a commit at most ({MOST_BOOTS})"
    )
    add_accelerator(parser)
    add_machine(parser)
    add_json(parser, '{"first_bad": [...], ...}')


def handle(arguments: argparse.Namespace) -> int:
    good, bad = (_with_ref(text) for text in (arguments.good, arguments.bad))
    repository = Repository.at(good.path)
    if Repository.at(bad.path).common != repository.common or _files(good) != _files(bad):
        raise UsageError("--good and --bad are to be refs of the same tree, with the same series on top.")
    if arguments.repetitions < MOST_BOOTS:
        raise UsageError(f"--repetitions has to be at least {MOST_BOOTS}: fewer boots do not tell much from chance.")
    report = Reporter()
    request, metric = _what(arguments)
    first, last = (repository.commit(name.ref) for name in (good, bad))

    def figures(commit: str, boots: int) -> list[float]:
        kernel = "+".join([f"{good.path}@{commit}", *good.series])
        return _figures(measure(request(kernel, boots), report).samples, metric.name)

    search = Search(repository, first, last, figures, arguments.repetitions, metric.negligible)
    steps = []
    for step in search.steps():
        steps.append(step)
        report.say(_line(step, metric, repository))
    found = [{"commit": commit, "subject": repository.subject(commit)} for commit in search.first_bad]
    if arguments.json:
        print(
            json.dumps({"metric": metric.name, "first_bad": found, "steps": [asdict(step) for step in steps]}, indent=1)
        )
    elif len(found) == 1:
        print(f"{found[0]['commit']} is the first bad commit: {found[0]['subject']}")
    else:
        print("The first bad commit is one of these, newest first; all but the newest could not be judged:")
        for each in found:
            print(f"{each['commit']} {each['subject']}")
    return 0


def _files(name: KernelName) -> list[str]:
    """The series on top, however their paths were written."""
    return [series if series == OURS else str(Path(series).expanduser().resolve()) for series in name.series]


def _with_ref(text: str) -> KernelName:
    name = parse_name(text)
    if not name.ref:
        raise UsageError(f"'{text}' is no commit of a git tree; write TREE@REF.")
    return name


def _what(arguments: argparse.Namespace) -> tuple[Callable[[str, int], RunRequest], Metric]:
    """What to ask for of so many boots of a kernel, and the metric; whatever is wrong with it is found here."""
    experiment = find_experiment(arguments.experiment)
    scale = experiment.scale(arguments.scale)
    chosen = cells.choose(scale.cells, arguments.cell)
    if len(chosen) != 1:
        some = "; ".join(cell.label for cell in chosen[:3])
        raise UnknownCell(f"{len(chosen)} cells are meant, such as {some}; choose one of them with --cell.")
    name = experiment.metric if arguments.metric is None else arguments.metric
    require_known("There is no metric", [name], METRICS)
    require_counting(name, arguments.accelerator or scale.parameters.accelerator)
    if arguments.variant is not None:
        variants.choose([arguments.variant], variants.load_variants())
    arch, page_size = machine(arguments)

    def request(kernel: str, boots: int) -> RunRequest:
        return RunRequest(
            experiment=experiment,
            scale=arguments.scale,
            variants=[] if arguments.variant is None else [arguments.variant],
            kernels=[kernel],
            cells=chosen,
            repetitions=boots,
            arch=arch.name,
            page_size=page_size,
            accelerator=arguments.accelerator,
        )

    return request, METRICS[name]


def _figures(samples: Sequence[Sample], metric: str) -> list[float]:
    """The metric of each sample in the order of repetitions. An error if one failed, the host's before the kernel's."""
    lost = [sample for sample in samples if sample.outcome == LOST_HOST]
    if error := failure_of(lost or samples):
        raise error
    values = [figure(sample.metrics, metric) for sample in samples]
    counted = [value for value in values if value is not None]
    if len(counted) < len(values):
        why = next((sample.sentence for sample in samples if sample.sentence), f"nothing counted {metric} there.")
        raise NoResult(why)
    return counted


def _line(step: JudgedCommit, metric: Metric, repository: Repository) -> str:
    unit = UNITS[metric.kind]
    figures = f"{', '.join(map(unit.spell, step.values))} {unit.name}".strip()
    among = f" (of {step.left})" if step.left else ""
    said = "; ".join(filter(None, [figures, step.why]))
    return f"{step.side:7} {step.commit[:12]}{among} {repository.subject(step.commit)}: {said}"

# SPDX-License-Identifier: GPL-2.0-only
"""Tell which workloads get worse under a variant or a kernel than under a baseline, the worst first. They are the cells
of all experiments that have a list 'compared' of metrics. What the store has already is not measured again.

example: ./lab compare --variant published,adaptive --workload gcc,sqlite --check
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace

from foliolab.analyse.compared import Question, choose_variants, measured
from foliolab.analyse.differences import MatrixPart
from foliolab.analyse.losses import make_matrix
from foliolab.campaign.measure import Request
from foliolab.campaign.runner import failure_of
from foliolab.campaign.sample import LOST_HOST, Sample
from foliolab.campaign.store import read_samples, store_file
from foliolab.cli import options
from foliolab.errors import UsageError
from foliolab.report import losses
from foliolab.report.markdown import matrix_to_table, to_markdown
from foliolab.report.section import of_matrix
from foliolab.report.terminal import print_section, terminal
from foliolab.reproduce.plan import made_by
from foliolab.reproduce.released import read_released

_DEFAULT = "adaptive"
"""The variant that --check judges unless others are asked for: the kernel as it boots."""


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "only these: names, or paths of .toml files (default: all of the lab's that have a list 'compared')"
    parser.add_argument("experiment", nargs="*", help=text)
    parser.add_argument("--variant", metavar="V,...", help="only these (default: those that the experiments name)")
    options.add_kernels(
        parser, "compare kernels: the others with the first, as they boot unless --variant says otherwise"
    )
    text = "what is compared with, measured twice (default: unpatched, or the first kernel)"
    parser.add_argument("--baseline", metavar="V", help=text)
    parser.add_argument(
        "--workload", metavar="NAME,...", action="append", default=[], help="only these; may be repeated"
    )
    options.add_cells(parser)
    options.add_sizes(parser)
    options.add_device(parser)
    options.add_machine(parser)
    options.add_workers(parser)
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


def handle(arguments: argparse.Namespace) -> int:
    arch, page_size = options.machine(arguments)
    names = options.names_of("--variant", arguments.variant)
    baseline, asked = choose_variants(names, arguments.baseline, arguments.kernels)
    if arguments.check and not asked and baseline == _DEFAULT:
        raise UsageError(f"--check judges {_DEFAULT}, which is the baseline; say with --variant what else to judge.")
    question = Question(baseline, asked, arch.name, page_size, arguments.device)
    workloads = [name for text in arguments.workload for name in options.names_of("--workload", text)]
    parts = question.parts(arguments.experiment, arguments.scale, arguments.cell, workloads)
    samples: list[Sample] = []
    stored = read_released() if arguments.released else read_samples(store_file()) if arguments.no_run else None
    if stored is not None:
        parts = [question.from_store(part, stored) for part in parts]
    if arguments.check and not asked:  # it is judged, also where the experiment does not name it
        parts = [replace(part, variants=tuple(dict.fromkeys((*part.variants, _DEFAULT)))) for part in parts]
    if stored is None:

        def request(part: MatrixPart) -> Request:
            return _request(part, names if arguments.kernels else [baseline, *part.variants], baseline, arguments)

        with options.workers(arguments) as found:
            parts, samples = measured(parts, request, found)
    matrix = make_matrix(parts, baseline=baseline)
    if arguments.json:
        print(json.dumps(losses.to_json(matrix), indent=1))
    elif arguments.table:
        print(matrix_to_table(matrix, made_by if arguments.released else None), end="")
    elif arguments.markdown:
        print(to_markdown(of_matrix(matrix, everything=arguments.all)), end="")
    else:
        print_section(terminal(), of_matrix(matrix, everything=arguments.all))
    # A crash is the variant's fault, as a loss is; a lost host says nothing of it.
    if arguments.check and not any(sample.outcome == LOST_HOST for sample in samples):
        losses.check(matrix, asked or [_DEFAULT])
    if error := failure_of(samples):
        raise error
    return 0


def _request(part: MatrixPart, variants: Sequence[str], baseline: str, arguments: argparse.Namespace) -> Request:
    return Request(
        experiment=part.experiment,
        scale=part.scale,
        variants=variants,
        kernels=arguments.kernels,
        again=baseline,
        cells=part.cells,
        repetitions=arguments.repetitions,
        arch=part.arch,
        page_size=part.page_size,
        device=arguments.device,
        shard=arguments.shard or (1, 1),
    )

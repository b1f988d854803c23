# SPDX-License-Identifier: GPL-2.0-only
"""Compile what our series changes for configurations that the lab does not boot. They are other architectures, and
kernels without what ours may take for granted. Only the objects of changed files are made, with W=1. The exit status
is 1 if a compiler complains.

example: ./lab kernel matrix riscv64 x86_64-no-thp
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from foliolab.cli.options import add_json, add_kernels
from foliolab.kernel.matrix import TargetOutcome, compiled, ported_kernels, read_targets
from foliolab.progress import Reporter
from foliolab.report.columns import Column
from foliolab.report.terminal import print_table, terminal


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(interrupted="Interrupted; the same command goes on where it was.")
    parser.add_argument(
        "target", nargs="*", help=f"only these (default: all): {', '.join(target.name for target in read_targets())}"
    )
    add_kernels(parser, f"with the series on this one (default: {' and '.join(ported_kernels())})")
    add_json(parser, '{"outcomes": [...]}')


def handle(arguments: argparse.Namespace) -> int:
    report = Reporter()
    targets = read_targets(arguments.target)
    kernels = dict.fromkeys(arguments.kernels or ported_kernels())
    outcomes = [outcome for kernel in kernels for outcome in compiled(kernel, targets, report)]
    if arguments.json:
        print(json.dumps({"outcomes": [asdict(outcome) for outcome in outcomes]}, indent=1))
    else:
        _print(outcomes)
    return 1 if any(outcome.complaints for outcome in outcomes) else 0


def _print(outcomes: Sequence[TargetOutcome]) -> None:
    columns = [
        Column(("", "target"), tuple(outcome.target for outcome in outcomes), 0, left=True),
        Column(("", "kernel"), tuple(outcome.kernel for outcome in outcomes), 0, left=True),
        Column(("", "Linux"), tuple(outcome.version for outcome in outcomes), 1),
        Column(("", "objects"), tuple(str(len(outcome.objects)) for outcome in outcomes), 0),
        Column(("", "complaints"), tuple(str(len(outcome.complaints)) for outcome in outcomes), 1),
        Column(("", "the first"), tuple(next(iter(outcome.complaints), "ok") for outcome in outcomes), 0, left=True),
    ]
    print_table(terminal(), columns, ["red" if outcome.complaints else "" for outcome in outcomes])

# SPDX-License-Identifier: GPL-2.0-only
"""Tell what a trace comes to with other windows, variants and memory, by a model. What the model predicts stands beside
what guests were measured to do with the same variant, window and memory, as the trace says or, of storage engines,
what './lab measure stores --scale full' has measured. Boots nothing. With --on, what the model decides to read is
really read from a file, and seconds come out.

example: ./lab trace replay traces/lmdb.trace --variant off,adaptive --memory 64M
"""

import argparse
from pathlib import Path

from foliolab.analyse.measured import store_groups, with_measured
from foliolab.campaign.store import read_samples, store_file
from foliolab.cli.options import add_device, add_json, limits_of, names_of, print_rows, size_of
from foliolab.cli.trace_on import add_file_options, on_file, replay_on_file
from foliolab.device import device_of
from foliolab.errors import require_known
from foliolab.files import TRACES
from foliolab.report.markdown import document_table
from foliolab.report.terminal import terminal
from foliolab.report.trace import difference_columns, print_replays
from foliolab.reproduce.released import read_released
from foliolab.trace.replay import RULES, read_replayable, replays

_WINDOWS = "128,4096"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="*", type=Path, help="default: those in traces/")
    text = f"of {', '.join(RULES)} (default: the first three)"
    parser.add_argument("--variant", metavar="NAME,...", default=",".join(RULES[:3]), help=text)
    parser.add_argument("--read-ahead-kb", metavar="KIB,...", help=f"default: {_WINDOWS}")
    parser.add_argument("--memory", metavar="SIZE", help="for the files (default: as the trace says)")
    add_device(parser, "tell seconds on this device, and the window what a request costs there")
    text = "beside the samples in release/, which are behind README and docs"
    parser.add_argument("--released", action="store_true", help=text)
    add_file_options(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--table", action="store_true", help="print Markdown for a document: how far the model is off")
    add_json(form, '{"replays": [...]}')


def handle(arguments: argparse.Namespace) -> int:
    reads = on_file(arguments)
    variants = names_of("--variant", arguments.variant)
    require_known("The model has no variant", variants, RULES)
    windows = [
        limit or 0 for limit in limits_of(_WINDOWS if arguments.read_ahead_kb is None else arguments.read_ahead_kb)
    ]
    memory = size_of(arguments.memory) if arguments.memory is not None else None
    device = device_of(arguments.device) if arguments.device is not None else None
    groups = store_groups(read_released() if arguments.released else read_samples(store_file()))
    paths = arguments.file or sorted(TRACES.glob("*.trace"))
    traces = [(str(path), with_measured(read_replayable(path), groups)) for path in paths]
    if reads:
        return replay_on_file(arguments, traces, variants, windows, memory)
    found = [replay for name, trace in traces for replay in replays(name, trace, variants, windows, memory, device)]
    if arguments.json:
        print_rows("replays", (replay.to_json() for replay in found))
    elif arguments.table:
        print(document_table(difference_columns(found)), end="")
    else:
        print_replays(terminal(), found, device.name if device else "")
    return 0

# SPDX-License-Identifier: GPL-2.0-only
"""Record which pages of mapped files a program touches, and replay that in a model."""

import argparse
from pathlib import Path

from foliohost.trace import read_trace
from foliolab.cli import trace_heatmap, trace_record, trace_replay, trace_store
from foliolab.cli.options import add_command, add_module, add_verbs
from foliolab.report.terminal import terminal
from foliolab.report.trace import print_trace


def add_options(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    add_module(verbs, "record", trace_record)
    add_module(verbs, "store", trace_store)
    add_module(verbs, "replay", trace_replay)
    info = add_command(verbs, "info", _info.__doc__, _info)
    info.add_argument("file", metavar="FILE", nargs="+", type=Path)
    add_module(verbs, "heatmap", trace_heatmap)


def _info(arguments: argparse.Namespace) -> int:
    """Tell what a trace is of, and what was measured with it."""
    for name, trace in [(str(path), read_trace(path)) for path in arguments.file]:
        print_trace(terminal(), name, trace)
    return 0

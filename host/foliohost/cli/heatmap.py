# SPDX-License-Identifier: GPL-2.0-only
"""Draw on the terminal which places of a file were touched when. What a trace of reads has is drawn alike.

example: foliolab-host heatmap scan.trace
"""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from pathlib import Path

from foliohost.errors import UsageError
from foliohost.report.heatmap import print_heatmap
from foliohost.terminal import terminal
from foliohost.trace import Trace, read_trace


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a trace, as record writes it")
    parser.add_argument("--file", metavar="GLOB", help="of the trace's files (default: the one with most touches)")


def handle(arguments: argparse.Namespace) -> int:
    trace = read_trace(arguments.trace)
    file = _chosen(trace, arguments.trace, arguments.file)
    console = terminal()
    print_heatmap(console, trace, file)
    others = sum(1 for number in set(trace.file_of) if number != file)
    if others:
        console.out(f"{others} more of its files have touches; --file names one.")
    return 0


def _chosen(trace: Trace, path: Path, pattern: str | None) -> int:
    """The index of the file with most touches, of those that a pattern names; UsageError if there is none."""
    touched = trace.touches_by_file()
    found = [
        number
        for number, file in enumerate(trace.files)
        if touched[number] and (pattern is None or fnmatchcase(file.name, pattern))
    ]
    if not found:
        raise UsageError(f"{path} has no touches" + (f" of a file '{pattern}'." if pattern else "."))
    return max(found, key=lambda number: touched[number])

# SPDX-License-Identifier: GPL-2.0-only
"""Draw which places of a file were touched when, on the terminal or as a picture. What a trace of reads has is drawn
alike.

example: ./lab trace heatmap traces/lmdb-zipf.trace --svg zipf.svg
"""

import argparse
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console

from foliolab.cli.options import require_room_for
from foliolab.errors import UsageError
from foliolab.files import write_atomic
from foliolab.report.heatmap import print_heatmap
from foliolab.trace.format import Trace, read_trace


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", type=Path)
    parser.add_argument("--file", metavar="GLOB", help="of the trace's files (default: the one with most touches)")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="write a picture for a browser, in place of drawing")


def handle(arguments: argparse.Namespace) -> int:
    trace = read_trace(arguments.trace)
    require_room_for("--svg", arguments.svg)
    file = _chosen(trace, arguments.trace, arguments.file)
    if arguments.svg:
        from foliolab.report.page.style import to_file  # takes a second, which the terminal does not need
        from foliolab.report.page.touches import touches_drawing

        drawing = to_file(touches_drawing(trace, file, arguments.trace.stem))
        write_atomic(arguments.svg, drawing.encode(errors="replace"))  # names of files can be any bytes
        return 0
    console = Console(highlight=False)  # a drawing is no wider where nobody looks
    print_heatmap(console, trace, file)
    others = sum(1 for number in set(trace.file_of) if number != file)
    if others:
        console.print(f"{others} more of its files have touches; --file names one.")
    return 0


def _chosen(trace: Trace, path: Path, pattern: str | None) -> int:
    touched = trace.touches_by_file()
    found = [
        number
        for number, file in enumerate(trace.files)
        if touched[number] and (pattern is None or fnmatchcase(file.name, pattern))
    ]
    if not found:
        raise UsageError(f"{path} has no touches" + (f" of a file '{pattern}'." if pattern else "."))
    return max(found, key=lambda number: touched[number])

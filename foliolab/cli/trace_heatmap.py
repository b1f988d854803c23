# SPDX-License-Identifier: GPL-2.0-only
"""Draw which places of a file were touched when, on the terminal or as a picture. What a trace of reads has is drawn
alike.

example: ./lab trace heatmap traces/lmdb-zipf.trace --svg zipf.svg
"""

import argparse
from pathlib import Path

from foliohost.cli import heatmap
from foliohost.trace import read_trace
from foliolab.cli.options import require_room_for
from foliolab.files import write_atomic


def add_options(parser: argparse.ArgumentParser) -> None:
    heatmap.add_options(parser)
    parser.add_argument("--svg", metavar="FILE", type=Path, help="write a picture for a browser, in place of drawing")


def handle(arguments: argparse.Namespace) -> int:
    if not arguments.svg:
        return heatmap.handle(arguments)
    trace = read_trace(arguments.trace)
    require_room_for("--svg", arguments.svg)
    file = heatmap.chosen(trace, arguments.trace, arguments.file)
    from foliolab.report.pictures import touches_picture  # takes a second, which the terminal does not need
    from foliolab.report.svg import to_svg

    svg = to_svg(touches_picture(trace, file, arguments.trace.stem))
    write_atomic(arguments.svg, svg.encode(errors="replace"))  # names of files can be any bytes
    return 0

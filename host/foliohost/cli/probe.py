# SPDX-License-Identifier: GPL-2.0-only
"""Measure in seconds what a read request and a page cost on the disk under a file, and tell the request_kb that
follows. Data is read past the page cache, and dirty pages of the file are written before; nothing is set, and root is
not needed. Of a directory, the largest files below it are read.

example: foliolab-host probe /srv/db/data.mdb
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from foliohost.cli.options import add_json, require_seconds
from foliohost.probe import measure
from foliohost.report.probe import print_probe, to_json
from foliohost.terminal import terminal

_SECONDS = 5.0
_SEED = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="FILE|DIR", type=Path, help="data on the disk in question, 64 MiB or more")
    parser.add_argument(
        "--seconds", type=float, metavar="N", default=_SECONDS, help=f"take about so long (default: {_SECONDS:.0f})"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", default=_SEED, help=f"of the places that are read (default: {_SEED})"
    )
    add_json(parser)


def handle(arguments: argparse.Namespace) -> int:
    require_seconds("--seconds", arguments.seconds)
    probe = measure(arguments.path, arguments.seconds, arguments.seed)
    if arguments.json:
        print(json.dumps(to_json(arguments.path, probe)))
    else:
        print_probe(terminal(), arguments.path, probe)
    return 0

# SPDX-License-Identifier: GPL-2.0-only
"""Write one case as a C file and a script, which show its effect on any Linux without the lab. A case is a name such as
R1, or one cell of an experiment.

example: ./lab export-case sparse-mmap --cell pattern=random
"""

import argparse
from pathlib import Path

from foliolab.analyse.rows import group_samples
from foliolab.cli.described import commit
from foliolab.cli.options import add_cells, limits_of, require_room_for
from foliolab.errors import UsageError
from foliolab.experiment import cell
from foliolab.experiment.load import find_case
from foliolab.files import REPOSITORY, write_atomic
from foliolab.report.case import ExportedCase, c_file, case_of, script
from foliolab.reproduce.released import read_released


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="of a case, such as R1, or of an experiment, or the path of its .toml file")
    add_cells(parser)
    parser.add_argument("--scale", help="of the experiment (default: quick, or full for a name such as R1)")
    text = "with these readahead windows (default: those that the experiment has)"
    parser.add_argument("--read-ahead-kb", metavar="KIB,...", help=text)
    text = "a directory, or the C file, which the script stands beside (default: here)"
    parser.add_argument("--output", metavar="DIR|FILE.c", type=Path, default=Path(), help=text)
    parser.add_argument("--force", action="store_true", help="overwrite what is there")


def handle(arguments: argparse.Namespace) -> int:
    case, place = _chosen(arguments)
    file, beside = (place / f"{case.name}{suffix}" for suffix in (".c", ".sh"))
    for each in (file, beside):
        require_room_for("--output", each)
        if each.exists() and not arguments.force:
            raise UsageError(f"{each} exists already; --force overwrites it.")
    lines = script(case, group_samples(read_released()))
    write_atomic(file, c_file(case, commit(REPOSITORY)))
    write_atomic(beside, lines)
    print(f"{file} and {beside} are written; on the machine to be tried: sh {beside.name} DIRECTORY")
    return 0


def _chosen(arguments: argparse.Namespace) -> tuple[ExportedCase, Path]:
    """The case, called as its files are to be, and the directory that these go to."""
    experiment, alias = find_case(arguments.name)
    scale = experiment.scale(arguments.scale or ("full" if alias else "quick"))
    cells = cell.choose([each for each in scale.cells if each.matches(alias)], arguments.cell)
    windows = [kb for kb in limits_of(arguments.read_ahead_kb) if kb is not None]
    name = arguments.name if alias else ""
    if arguments.output.suffix == ".c":
        return case_of(arguments.output.stem, experiment, scale, cells, windows), arguments.output.parent
    return case_of(name, experiment, scale, cells, windows), arguments.output

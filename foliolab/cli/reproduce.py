# SPDX-License-Identifier: GPL-2.0-only
"""Measure all that is behind the figures of README and docs. It is what release/plan.toml names, with the code as it
stands. What the store has already is not measured again: killed at any moment, the same command goes on where it was.

example: ./lab reproduce --quick --plan
"""

import argparse
import contextlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict

from foliolab.campaign.store import read_samples, store_file
from foliolab.cli.options import add_json, add_workers, names_of, require_checkout, workers
from foliolab.errors import LabError, UsageError
from foliolab.kernel.code import code_hash
from foliolab.kernel.name import BASE_VERSION
from foliolab.report.columns import Column
from foliolab.report.terminal import print_table, terminal
from foliolab.reproduce.parts import fill_documents, measure_part, progress, ship, standing
from foliolab.reproduce.plan import Part, Progress, choose_parts, load_plan
from foliolab.reproduce.released import read_released


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="PART,...", action="append", default=[], help="only these; may be repeated")
    parser.add_argument("--quick", action="store_true", help="only what an evening is enough for")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--plan", action="store_true", help="print parts and their price, and measure nothing")
    text = "measure nothing; ship what was measured, table by table, in release/, and fill the figures of documents"
    what.add_argument("--write", action="store_true", help=text)
    text = "measure nothing; exit with 1 if a figure is not what its command makes of release/, or if release/ was"
    text += " measured with other code"
    what.add_argument("--check", action="store_true", help=text)
    add_workers(parser)
    add_json(parser, '{"experiments": [...]}')


def handle(arguments: argparse.Namespace) -> int:
    require_checkout("This fills documents")
    parts = load_plan()
    names = [name for some in arguments.only for name in names_of("--only", some)]
    chosen = choose_parts(parts, names, quick=arguments.quick)
    if (arguments.write or arguments.check) and len(chosen) < len(parts):
        raise UsageError("--write and --check are about all parts: they take neither --only nor --quick.")
    if arguments.write:
        ship(parts)
        fill_documents(parts, run_lab)
        return 0
    if arguments.check:
        return _check(parts, arguments.json)
    errors: list[LabError] = []
    if not arguments.plan:
        with workers(arguments) as by:
            for part in chosen:
                if error := measure_part(part, by, arguments.shard or (1, 1), run_lab):
                    errors.append(error)
    found = progress(chosen, read_samples(store_file()), read_released())
    if arguments.json:
        print(
            json.dumps({"code": code_hash(BASE_VERSION), "experiments": [each.to_json() for each in found]}, indent=1)
        )
    else:
        _print(found)
    if errors:
        raise errors[0]
    return 0


def run_lab(argv: Sequence[str]) -> str:
    """What another command of the lab prints; whatever it fails with is raised."""
    from foliolab.cli.main import command_line  # which imports this module

    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        arguments = command_line().parse_args(list(argv))
        arguments.handler(arguments)
    return output.getvalue()


def _print(found: Sequence[Progress]) -> None:
    console = terminal()
    columns = [
        Column(("", "part"), tuple(each.part.name for each in found), 0, left=True),
        Column(("", "what"), tuple(_what(each.part) for each in found), 2, left=True),
        Column(("", "n"), tuple(str(each.part.n) for each in found), 1),
        Column(("", "measured"), tuple(f"{each.done} of {each.steps}" for each in found), 0),
        Column(("hours", "left"), tuple("?" if each.hours is None else f"{each.hours:.1f}" for each in found), 0),
        Column(("", "shown in"), tuple(", ".join(each.part.shown) for each in found), 3, left=True),
    ]
    print_table(console, columns, ["green" if each.complete else "" for each in found])
    complete, hours = sum(each.complete for each in found), [each.hours for each in found]
    left = f"{'at least ' if None in hours else ''}{sum(filter(None, hours)):.1f} hours"
    console.print(f"\n{complete} of {len(found)} parts are complete; {left} are left, besides building kernels.")


def _what(part: Part) -> str:
    if part.command:
        return f"./lab {' '.join(part.command)}"
    return ", ".join(filter(None, [part.experiment, part.scale, part.machine, part.device, *part.kernels]))


def _check(parts: Sequence[Part], as_json: bool) -> int:
    found = standing(parts, run_lab)
    if as_json:
        print(json.dumps(asdict(found), indent=1))
    else:
        print(f"{sum(found.typed.values())} figures are typed:")
        for name, number in found.typed.items():
            print(f"{number:>6}  {name}")
        if found.waiting:
            print("Not measured yet:", *found.waiting, sep="\n  ")
    found.check()
    return 0

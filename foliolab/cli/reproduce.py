# SPDX-License-Identifier: GPL-2.0-only
"""Measure all that is behind the figures of README and docs. It is what release/plan.toml names, with the code as it
stands. What the store has already is not measured again: killed at any moment, the same command goes on where it was.

example: ./lab reproduce --quick --plan
"""

import argparse
import contextlib
import io
import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from foliolab.campaign.measure import measure, planned
from foliolab.campaign.runner import Workers, failure_of
from foliolab.campaign.sample import Sample
from foliolab.campaign.store import read_samples, store_file
from foliolab.cli.options import Shard, add_json, add_workers, names_of, workers
from foliolab.errors import ChecksFailed, EmptyPart, LabError, NoResult, UsageError
from foliolab.files import INSTALLED, RELEASE, REPOSITORY, results_directory, write_atomic
from foliolab.kernel.code import code_hash
from foliolab.kernel.name import BASE_VERSION
from foliolab.progress import say
from foliolab.report.columns import Column
from foliolab.report.reads import READS, RECORDED, recorded_reads
from foliolab.report.terminal import print_table, terminal
from foliolab.reproduce.documents import FIGURES, Printed, fill, load_figures, shown
from foliolab.reproduce.plan import Part, Progress, choose_parts, documents, load_plan, measured
from foliolab.reproduce.released import Output, read_output, read_released, released_anew, write_output, write_released


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="PART,...", action="append", default=[], help="only these; may be repeated")
    parser.add_argument("--quick", action="store_true", help="only what an evening is enough for")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--plan", action="store_true", help="print parts and their price, and measure nothing")
    text = "measure nothing; ship what was measured, part by part, in release/, and fill the figures of documents"
    what.add_argument("--write", action="store_true", help=text)
    text = "measure nothing; exit with 1 if a figure is not what its command makes of release/, or if release/ was"
    text += " measured with other code"
    what.add_argument("--check", action="store_true", help=text)
    add_workers(parser)
    add_json(parser, '{"experiments": [...]}')


def handle(arguments: argparse.Namespace) -> int:
    if INSTALLED:
        raise UsageError("The documents are in a checkout of foliolab, not in what pip installs.")
    parts = load_plan()
    names = [name for some in arguments.only for name in names_of("--only", some)]
    chosen = choose_parts(parts, names, quick=arguments.quick)
    if (arguments.write or arguments.check) and len(chosen) < len(parts):
        raise UsageError("--write and --check are about all parts: they take neither --only nor --quick.")
    if arguments.write:
        _ship(parts)
        _fill(parts)
        return 0
    if arguments.check:
        return _check(parts, arguments.json)
    errors: list[LabError] = []
    if not arguments.plan:
        with workers(arguments) as by:
            for part in chosen:
                if error := _measure(part, by, arguments.shard):
                    errors.append(error)
    found = _progress(chosen, read_samples(store_file()), read_released())
    if arguments.json:
        print(
            json.dumps({"code": code_hash(BASE_VERSION), "experiments": [each.to_json() for each in found]}, indent=1)
        )
    else:
        _print(found)
    if errors:
        raise errors[0]
    return 0


def _measure(part: Part, by: Workers, shard: Shard | None) -> LabError | None:
    """Measure what the store lacks of a part; what fails is said, and is no reason to leave out the next part."""
    say(f"{part.name}: {' '.join(part.command) or part.experiment}")
    try:
        if part.command:
            if (not shard or shard[0] == 1) and not _done(part):
                write_output(part, run_lab(part.command), _kept())
            return None
        return failure_of(measure(part.request(shard or (1, 1)), by).samples)
    except EmptyPart as error:
        say(f"{part.name}: {error}")
        return None
    except LabError as error:
        say(f"{part.name}: {error}")
        return error


def _kept() -> Path:
    """Where what commands print is kept."""
    return results_directory() / "reproduced"


def _done(part: Part) -> Output | None:
    """What a command has printed, if it is of the code as it stands."""
    output = read_output(part, _kept())
    return output if output and output.is_of(part) else None


def run_lab(argv: Sequence[str]) -> str:
    """What another command of the lab prints; whatever it fails with is raised."""
    from foliolab.cli.main import command_line  # which imports this module

    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        arguments = command_line().parse_args(list(argv))
        arguments.handler(arguments)
    return output.getvalue()


def _progress(parts: Sequence[Part], samples: Sequence[Sample], shipped: Sequence[Sample] = ()) -> list[Progress]:
    found = []
    for part in parts:
        if part.command:
            done = int(_done(part) is not None)
            found.append(Progress(part, 1, (), done, 0 if done else part.hours))
        else:
            found.append(measured(part, planned(part.request())[0].steps, samples, shipped))
    return found


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


def _ship(parts: Sequence[Part]) -> None:
    """Take over into release/ what was measured here."""
    experiments = [part for part in parts if not part.command]
    here, before = (_progress(experiments, samples) for samples in (read_samples(store_file()), read_released()))
    write_released(released_anew(here, before))
    for part in _shown_commands(parts):
        if output := _done(part):
            write_output(part, output.output, RELEASE)
    picture = recorded_reads(results_directory() / RECORDED)
    if picture and picture.code == code_hash(BASE_VERSION):
        write_atomic(RELEASE / RECORDED, json.dumps(asdict(picture)))


def _texts(parts: Sequence[Part]) -> dict[str, str]:
    """The documents of the plan, by their names in the repository."""
    return {name: (REPOSITORY / name).read_text() for name in documents(parts)}


def _shown_commands(parts: Sequence[Part]) -> list[Part]:
    """Those whose output documents show."""
    figures = load_figures(RELEASE / FIGURES)
    wanted = {command for text in _texts(parts).values() for command in shown(text, figures)}
    return [part for part in parts if shlex.join(part.command) in wanted]


def _runs(parts: Sequence[Part]) -> Printed:
    """Runs each command once. What commands of the plan print is that of release/; others may measure nothing."""
    planned = {part.command: part for part in parts if part.command}

    @cache
    def run(argv: tuple[str, ...]) -> str:
        if argv in planned:
            output = read_output(planned[argv], RELEASE)
            if not output:
                raise NoResult(f"'{shlex.join(argv)}' was not released.")
            return output.output
        if argv[0] != "simulate" and "--released" not in argv:
            raise UsageError(f"'{shlex.join(argv)}' may measure: simulate does not, nor what has --released.")
        return run_lab(argv)

    return lambda argv: run(tuple(argv))


def _fill(parts: Sequence[Part]) -> None:
    for file, drawing in _drawn().items():
        write_atomic(REPOSITORY / file, drawing)
    run, figures = _runs(parts), load_figures(RELEASE / FIGURES)
    faults = []
    for name, before in _texts(parts).items():
        try:
            after = fill(before, run, figures).text
        except LabError as error:
            faults.append(f"{name} is as it was: {error}")
            continue
        if after != before:
            write_atomic(REPOSITORY / name, after)
            say(f"{name} has new figures.")
    if faults:
        raise ChecksFailed(" ".join(faults))


def _drawn() -> dict[Path, str]:
    from foliolab.report.pictures import of_documents  # takes a second, which plans do not need

    return of_documents(recorded_reads(RELEASE / RECORDED), read_released())


def _check(parts: Sequence[Part], as_json: bool) -> int:
    wrong, typed = [], {}
    waiting: list[str] = []
    run, figures = _runs(parts), load_figures(RELEASE / FIGURES)
    for name, text in _texts(parts).items():
        try:
            filled = fill(text, run, figures)
        except LabError as error:
            wrong.append(f"{name}: {error}")
            continue
        wrong += [f"{name}: {what}" for what in filled.changed]
        waiting += [f"{name}: {what}" for what in filled.waiting]
        typed[name] = filled.typed
    wrong += [str(file) for file, drawing in _drawn().items() if (REPOSITORY / file).read_text() != drawing]
    older = _older(parts)
    if as_json:
        print(json.dumps({"differing": wrong, "older": older, "waiting": waiting, "typed": typed}, indent=1))
    else:
        print(f"{sum(typed.values())} figures are typed:")
        for name, number in typed.items():
            print(f"{number:>6}  {name}")
        if waiting:
            print("Not measured yet:", *waiting, sep="\n  ")
    faults = []
    if wrong:
        faults.append(f"Figures and pictures differ from what their commands make: {'; '.join(wrong)}.")
    if older:
        faults.append(f"Measured with other code than stands here: {', '.join(older)}.")
    if faults:
        raise ChecksFailed(" ".join(faults))
    return 0


def _older(parts: Sequence[Part]) -> list[str]:
    """What is shipped and was measured with other code than stands here."""
    experiments = _progress([part for part in parts if not part.command], read_released())
    found = [each.part.name for each in experiments if each.older]
    for part in _shown_commands(parts):
        output = read_output(part, RELEASE)
        if output and not output.is_of(part):
            found.append(part.name)
    picture = recorded_reads(RELEASE / RECORDED)
    return [*found, str(READS)] if picture and picture.code != code_hash(BASE_VERSION) else found

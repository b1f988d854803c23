# SPDX-License-Identifier: GPL-2.0-only
"""Parts of the plan: measured here, shipped in release/, and shown by documents."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from foliolab.campaign.measure import measure
from foliolab.campaign.runner import Workers, failure_of
from foliolab.campaign.sample import Sample
from foliolab.campaign.store import read_samples, store_file
from foliolab.errors import ChecksFailed, EmptyPart, LabError, NoResult, UsageError
from foliolab.experiment.load import find_experiment
from foliolab.files import RELEASE, REPOSITORY, results_directory, write_atomic
from foliolab.grouped import grouped
from foliolab.kernel.code import code_hash
from foliolab.kernel.name import BASE_VERSION
from foliolab.progress import say
from foliolab.report.reads import PICTURED, READS, RECORDED, recorded_reads
from foliolab.reproduce.documents import FIGURES, Printed, fill, load_figures, shown
from foliolab.reproduce.plan import Part, Progress, documents, measured, places_of
from foliolab.reproduce.released import (
    Output,
    code_behind,
    read_output,
    read_released,
    released_anew,
    unfinished,
    write_output,
    write_released,
)

_REGRETS = ("simulate", "--table", "--json")
"""What prints the regrets of a picture."""
RunLab = Callable[[Sequence[str]], str]
"""What another command of the lab prints."""


def progress(parts: Sequence[Part], samples: Sequence[Sample], shipped: Sequence[Sample] = ()) -> list[Progress]:
    """How far the samples are with each; ``shipped`` ones only tell how long they take."""
    tables = grouped((part for part in parts if part.experiment), lambda part: part.table)
    of_tables = {
        table: {place: settings for part in mine for place, settings in places_of(part).items()}
        for table, mine in tables.items()
    }
    found = []
    for part in parts:
        if part.command:
            done = int(_done(part) is not None)
            found.append(Progress(part, 1, (), done, 0 if done else part.hours))
        else:
            found.append(measured(part, places_of(part), samples, shipped, of_tables[part.table]))
    return found


def measure_part(part: Part, by: Workers, shard: tuple[int, int], run_lab: RunLab) -> LabError | None:
    """Measure what the store lacks of a part; what fails is said, and is no reason to leave out the next part."""
    say(f"{part.name}: {' '.join(part.command) or part.experiment}")
    try:
        if not part.command:
            return failure_of(measure(part.request(shard), by).samples)
        if shard[0] == 1 and not _done(part):
            code = code_behind(part)  # as it stands before the command: what changes meanwhile is not what it ran
            write_output(part, Output([*part.command], code, run_lab(part.command)), _kept())
    except LabError as error:
        say(f"{part.name}: {error}")
        return None if isinstance(error, EmptyPart) else error
    return None


def ship(parts: Sequence[Part]) -> None:
    """Take over into release/ what was measured here."""
    experiments = [part for part in parts if not part.command]
    here, before = (progress(experiments, samples) for samples in (read_samples(store_file()), read_released()))
    write_released(released_anew(here, before))
    waiting = unfinished(here)
    for each in here:
        if each.complete and each.part.table in waiting:
            say(f"{each.part.name} is as it was shipped: other parts of its table are not measured.")
    for part in _shown_commands(parts):
        if output := _done(part):
            write_output(part, output, RELEASE)
    picture = recorded_reads(results_directory() / RECORDED)
    if picture and picture.code == _code_pictured():
        write_atomic(RELEASE / RECORDED, json.dumps(asdict(picture)))


def fill_documents(parts: Sequence[Part], run_lab: RunLab) -> None:
    """Draw pictures and fill figures anew from release/; ChecksFailed with the documents that could not be filled."""
    run, figures = _runs(parts, run_lab), load_figures(RELEASE / FIGURES)
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
    for file, drawing in _drawn(run).items():
        write_atomic(REPOSITORY / file, drawing)
    if faults:
        raise ChecksFailed(" ".join(faults))


@dataclass(frozen=True)
class Standing:
    """How documents stand to release/, and release/ to the code."""

    differing: list[str]
    """Figures and pictures that are not what their commands make."""
    older: list[str]
    """What was measured with other code than stands here."""
    waiting: list[str]
    """What was not measured yet: parts of the plan, and what documents show."""
    typed: dict[str, int]
    """How many figures of each document were typed."""

    def check(self) -> None:
        """Raise ChecksFailed for what differs or is older."""
        faults = []
        if self.differing:
            faults.append(f"Figures and pictures differ from what their commands make: {'; '.join(self.differing)}.")
        if self.older:
            faults.append(f"Measured with other code than stands here: {', '.join(self.older)}.")
        if faults:
            raise ChecksFailed(" ".join(faults))


def standing(parts: Sequence[Part], run_lab: RunLab) -> Standing:
    experiments = progress([part for part in parts if not part.command], read_released())
    lacking = [each.part.name for each in experiments if len(each.samples) < each.steps]
    found = Standing([], _older(parts, experiments), lacking, {})
    run, figures = _runs(parts, run_lab), load_figures(RELEASE / FIGURES)
    for name, text in _texts(parts).items():
        try:
            filled = fill(text, run, figures)
        except LabError as error:
            found.differing.append(f"{name}: {error}")
            continue
        found.differing.extend(f"{name}: {what}" for what in filled.changed)
        found.waiting.extend(f"{name}: {what}" for what in filled.waiting)
        found.typed[name] = filled.typed
    found.differing.extend(str(file) for file, text in _drawn(run).items() if (REPOSITORY / file).read_text() != text)
    return found


def _older(parts: Sequence[Part], experiments: Sequence[Progress]) -> list[str]:
    """The names of what was measured with other code; ``experiments`` are how far the samples in release/ are."""
    found = [each.part.name for each in experiments if each.older]
    for part in _shown_commands(parts):
        output = read_output(part, RELEASE)
        if output and not output.is_of(part):
            found.append(part.name)
    picture = recorded_reads(RELEASE / RECORDED)
    return [*found, str(READS)] if picture and picture.code != _code_pictured() else found


def _code_pictured() -> str:
    """The hash of our code, as far as the picture of reads depends on it."""
    return code_hash(BASE_VERSION, without=find_experiment(PICTURED).unaffected_by)


def _kept() -> Path:
    """Where what commands print is kept."""
    return results_directory() / "reproduced"


def _done(part: Part) -> Output | None:
    """What a command has printed, if it is of the code as it stands."""
    output = read_output(part, _kept())
    return output if output and output.is_of(part) else None


def _texts(parts: Sequence[Part]) -> dict[str, str]:
    """The documents of the plan, by their names in the repository."""
    return {name: (REPOSITORY / name).read_text() for name in documents(parts)}


def _shown_commands(parts: Sequence[Part]) -> list[Part]:
    """Those whose output documents show."""
    figures = load_figures(RELEASE / FIGURES)
    wanted = {command for text in _texts(parts).values() for command in shown(text, figures)}
    return [part for part in parts if shlex.join(part.command) in wanted]


def _runs(parts: Sequence[Part], run_lab: RunLab) -> Printed:
    """Runs each command once. What commands of the plan print is that of release/; others may measure nothing."""
    of_plan = {part.command: part for part in parts if part.command}

    @cache
    def run(argv: tuple[str, ...]) -> str:
        if argv in of_plan:
            output = read_output(of_plan[argv], RELEASE)
            if not output:
                raise NoResult(f"'{shlex.join(argv)}' was not released.")
            return output.output
        if argv[0] != "simulate" and "--released" not in argv:
            raise UsageError(f"'{shlex.join(argv)}' may measure: simulate does not, nor what has --released.")
        return run_lab(argv)

    return lambda argv: run(tuple(argv))


def _drawn(run: Printed) -> dict[Path, str]:
    from foliolab.report.pictures import of_documents  # takes a second, which plans do not need

    regrets = json.loads(run(_REGRETS))["rows"]
    return of_documents(recorded_reads(RELEASE / RECORDED), read_released(), regrets)

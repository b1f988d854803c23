# SPDX-License-Identifier: GPL-2.0-only
"""What is behind the figures of README and docs, as release/plan.toml says it, and how far a store is with it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from foliolab.analyse.rows import Group, setting, without_passed_over
from foliolab.arch import MACHINES, NATIVE
from foliolab.campaign.measure import Request, planned
from foliolab.campaign.sample import LOST_HOST, MODEL, NOT_APPLICABLE, OK, KernelFacts, Sample
from foliolab.device import load_devices
from foliolab.errors import require_known
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.files import RELEASE
from foliolab.kernel.code import code_of
from foliolab.model.compiled import policy_hash
from foliolab.toml import Number, Place, Positive, Text, Texts, Value, read_toml

PLAN = RELEASE / "plan.toml"


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An experiment as documents show it, or another command of the lab."""

    name: Text
    shown: Texts
    """The documents, with their sections."""
    hours: Number = 0
    """What a command takes on two processors. Experiments have none: samples say what they took."""
    quick: bool = False
    """Whether it belongs to an evening's work."""
    command: Texts = ()
    """Of the lab, instead of an experiment."""
    experiment: str = ""
    scale: Text = "quick"
    variants: Texts = ()
    """None are the scale's own."""
    again: str = ""
    """Which of the variants is measured twice, to be compared with itself."""
    kernels: Texts = ()
    cells: Texts = ()
    """As on the command line: "axis=value", joined by commas."""
    machine: Text = f"{NATIVE.name}-4k"
    device: str = ""
    """Of which kind disks are that take time, by its name in experiments/devices.toml; empty if they take none."""
    backend: Literal["qemu", "model"] = "qemu"
    n: Positive = 1
    """Boots, or runs, of each cell."""

    @property
    def table(self) -> tuple[str, ...]:
        """What it shares with the parts whose figures may stand in one table with its own."""
        return self.experiment, self.scale, self.machine, self.device, self.backend

    def request(self, shard: tuple[int, int] = (1, 1)) -> Request:
        """What of an experiment is to be measured."""
        arch, _, page_size = self.machine.rpartition("-")
        return Request(
            experiment=self.experiment,
            scale=self.scale,
            variants=self.variants or None,
            again=self.again or None,
            kernels=self.kernels,
            cells=self.cells,
            repetitions=self.n,
            arch=arch,
            page_size=int(page_size.removesuffix("k")) << 10,
            backend=self.backend,
            device=self.device or None,
            shard=shard,
        )


class _Plan(Struct, forbid_unknown_fields=True):
    part: Annotated[list[Any], Meta(min_length=1)]


def load_plan(file: Path = PLAN) -> list[Part]:
    """All parts in their order; BadExperiment for a mistake in the file."""
    top = Place(file)
    parts: list[Part] = []
    for number, content in enumerate(top.convert(read_toml(file), _Plan).part):
        place = top.at(f"part[{number}]")
        part = place.convert(content, Part)
        if bool(part.command) == bool(part.experiment):
            place.fail("has to have either a command or an experiment")
        if bool(part.command) != bool(part.hours):
            place.at("hours").fail("is what a command has to have, and nothing else")
        if part.again and part.again not in part.variants:
            place.at("again").fail(f"is '{part.again}', which is none of the variants")
        place.at("machine").all_of([part.machine], MACHINES)
        if part.device:
            place.at("device").all_of([part.device], load_devices())
        if part.name in (before.name for before in parts):
            place.at("name").fail(f"is '{part.name}', as that of another part")
        parts.append(part)
    return parts


def choose_parts(parts: Sequence[Part], names: Sequence[str], *, quick: bool) -> list[Part]:
    """The parts of these names, or all, or the quick ones; UsageError for a name that is not there."""
    require_known("There is no part", names, (part.name for part in parts))
    return [part for part in parts if (part.name in names or not names) and (part.quick or not quick)]


def made_by(group: Group, shown: Iterable[tuple[Cell, str]]) -> str:
    """The command that measures these cells and variants of a group of samples; empty if no part of the plan does."""
    wanted = {(_text(cell.as_dict()), variant) for cell, variant in shown}
    alike = (part for part in load_plan() if _alike(part, group.samples[0]))
    names = [part.name for part in alike if any(place[:2] in wanted for place in places_of(part))]
    return f"./lab reproduce --only {','.join(names)}" if names else ""


def documents(parts: Iterable[Part]) -> list[str]:
    """The files that show parts, each once, by their names in the repository."""
    return list(dict.fromkeys(place.partition("#")[0] for part in parts for place in part.shown))


_Place = tuple[str, str, int]
"""Of a measurement in its experiment: cell, variant, repetition."""
_Parameters = Mapping[str, str | int | float]
_Settings = tuple[Mapping[str, Value], _Parameters]
PlannedPlaces = Mapping[_Place, _Settings]


def _settings(switches: Mapping[str, Value], parameters: _Parameters) -> _Settings:
    """Switches and parameters, without the processor count: a backend may give fewer."""
    return switches, {name: value for name, value in parameters.items() if name != "cpus"}


@cache
def places_of(part: Part) -> PlannedPlaces:
    """Of what a part of the plan measures, if it is an experiment."""
    plan, *_ = planned(part.request())
    parameters = plan.scale.parameters.recorded()
    return {
        (_text(step.cell.as_dict()), step.variant.name, step.repetition): _settings(
            dict(step.variant.switches), parameters
        )
        for step in plan.steps
    }


@dataclass(frozen=True)
class Progress:
    part: Part
    steps: int
    """Measurements that it takes; 1 for a command."""
    samples: tuple[Sample, ...]
    """The newest of each of these that there is."""
    done: int
    """How many of these are of the code as it stands."""
    hours: float | None
    """That the rest takes, without building kernels; None if nobody has measured any of it."""

    @property
    def complete(self) -> bool:
        return self.done == self.steps

    @property
    def older(self) -> bool:
        return self.done < len(self.samples)

    def to_json(self) -> dict[str, Any]:
        part = self.part
        return {
            "name": part.name,
            "experiment": part.experiment or None,
            "command": " ".join(part.command) or None,
            "scale": part.scale,
            "machine": part.machine,
            "device": part.device or None,
            "n": part.n,
            "measured": self.done,
            "steps": self.steps,
            "complete": self.complete,
            "hours": None if self.hours is None else round(self.hours, 2),
            "shown": list(part.shown),
        }


def measured(
    part: Part,
    wanted: PlannedPlaces,
    samples: Iterable[Sample],
    shipped: Iterable[Sample] = (),
    of_table: PlannedPlaces | None = None,
) -> Progress:
    """The progress of an experiment whose plan has these places. ``shipped`` samples only tell how long they take.

    ``of_table`` are the places of its table, those of other parts included.

    The samples are of the part's newest probe and parameters, and are done if these are its table's newest, and their
    kernels as well. Whether that is today's probe is not looked at: it is known when a measurement is asked for, by a
    key of all that decides.
    """
    policy, code = policy_hash(), cache(code_of)
    without = find_experiment(part.experiment).unaffected_by

    def fresh(sample: Sample) -> bool:
        """Whether it is of settings and the code as they stand, as far as this can affect the experiment."""
        if _settings(sample.switches, sample.parameters) != places[_place_of(sample)]:
            return False
        if sample.backend == MODEL:
            return sample.kernel.hash == policy
        return sample.code == code(sample.kernel.name, sample.kernel.version, without)

    places = {**(of_table or {}), **wanted}
    # A change that was measured and taken back is the last in the store, but not what stands. Kernels without our code
    # cannot tell.
    table = without_passed_over(sample for sample in samples if _alike(part, sample) and _place_of(sample) in places)
    table.sort(key=lambda sample: (fresh(sample), bool(sample.code)))
    mine = [sample for sample in table if _place_of(sample) in wanted]
    alike = [sample for sample in mine if setting(sample) == setting(mine[-1])]
    newest = {_place_of(sample): sample for sample in alike if sample.outcome in (OK, NOT_APPLICABLE)}
    current = bool(mine) and setting(mine[-1]) == setting(table[-1])
    older = _older_kernels(table)
    done = {place for place, sample in newest.items() if current and fresh(sample) and sample.kernel not in older}
    # Repetitions of a cell take as long as each other, and cells do not.
    timed = [sample for sample in (*(sample for sample in shipped if _alike(part, sample)), *alike) if sample.took]
    took = {_place_of(sample)[:2]: sample.took for sample in timed}
    usual = mean(took.values()) if took else None
    left = [took.get(place[:2], usual) for place in wanted.keys() - done]
    hours = None if None in left else sum(filter(None, left)) / 3600
    return Progress(part, len(wanted), tuple(newest.values()), len(done), hours)


def _older_kernels(table: Sequence[Sample]) -> set[KernelFacts]:
    """All but the newest of each name, among those that have a result of the newest probe and parameters."""
    decided = [each for each in table if not each.passed_over and each.outcome != LOST_HOST]
    kernels = [each.kernel for each in decided if setting(each) == setting(table[-1])]
    newest = {kernel.name: kernel.hash for kernel in kernels}
    return {kernel for kernel in kernels if kernel.hash != newest[kernel.name]}


def _alike(part: Part, sample: Sample) -> bool:
    mine = (part.experiment, part.scale, part.device, part.backend == MODEL, "lab")
    if mine != (sample.experiment, sample.scale, sample.device, sample.backend == MODEL, sample.profile):
        return False
    return sample.backend == MODEL or sample.machine == part.machine


def _place_of(sample: Sample) -> _Place:
    return _text(sample.cell), sample.variant, sample.repetition


def _text(cell: Mapping[str, Value]) -> str:
    return json.dumps(cell, sort_keys=True)

# SPDX-License-Identifier: GPL-2.0-only
"""Experiment files: finding them, and turning their TOML into an Experiment or a clear complaint."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, defstruct
from msgspec.structs import asdict

from foliolab.arch import MACHINES
from foliolab.errors import BadExperiment, UnknownExperiment
from foliolab.experiment.cell import Cell, expand
from foliolab.experiment.machine import check_machine, in_bytes
from foliolab.experiment.metrics import METRICS
from foliolab.experiment.spec import (
    FLOOR,
    PUBLISHED_FIGURE,
    ROOTS,
    WITHOUT_FILE,
    Expectation,
    Experiment,
    Parameters,
    Published,
    Scale,
)
from foliolab.experiment.variants import Variant, load_variants
from foliolab.files import EXPERIMENTS
from foliolab.kernel.series import topics
from foliolab.toml import Number, Place, Positive, Share, Text, Texts, Value, read_toml

_GIB = 1 << 30

_Tables = Annotated[list[dict[str, Any]], Meta(min_length=1)]


class _Workload(Struct, forbid_unknown_fields=True):
    argv: Texts


_Published = defstruct(
    "_Published",
    [
        ("cell", dict[str, Any]),
        ("variants", Texts),
        ("machines", Texts, ()),
        ("read_gib", Number | None, None),
        *((name, Share | None, None) for name in METRICS),
    ],
    forbid_unknown_fields=True,
)


class _Scale(Parameters, frozen=True, kw_only=True):
    factor: Number
    cells: _Tables | None = None
    variants: Texts | None = None
    repetitions: Positive | None = None


class _File(Struct, forbid_unknown_fields=True):
    """What a file may have. Scales are looked at once the parameters of all of them have been filled in."""

    question: Text
    metric: Text
    repetitions: Positive
    cells: _Tables
    variants: Texts
    workload: _Workload
    parameters: dict[str, Any]
    scales: dict[str, dict[str, Any]]
    floor: Text | None = None
    columns: Texts = ()
    machines: Texts = ()
    notes: Texts = ()
    compared: Texts = ()
    unaffected_by: Texts = ()
    aliases: dict[Text, dict[str, Any]] = {}
    agreement: dict[str, Any] = {}
    published: list[dict[str, Any]] = []
    expect: list[Expectation] = []


def experiment_names() -> list[str]:
    """The experiments that come with the lab."""
    return sorted({file.stem for file in EXPERIMENTS.glob("*.toml")} - {"devices", "metrics", "variants"})


def find_experiment(name: str) -> Experiment:
    """Load an experiment by its name, or by the path of its .toml file."""
    known = experiment_names()
    if name.endswith(".toml") or "/" in name:
        file = Path(name)
        if not file.is_file():
            raise UnknownExperiment(f"There is no experiment file {name}.")
        if file.stem in known and file.resolve().parent != EXPERIMENTS:
            raise BadExperiment(f"{file} has the name of an experiment of the lab; its samples would mix. Rename it.")
        return load_experiment(file)
    if name not in known:
        raise UnknownExperiment(f"There is no experiment '{name}'; known: {', '.join(known)}, or the path of a .toml.")
    return load_experiment(EXPERIMENTS / f"{name}.toml")


def find_case(name: str) -> tuple[Experiment, Mapping[str, Value]]:
    """An experiment of the lab that calls cells of its own so, with axis values of these.

    Else it is an experiment as ``find_experiment`` finds it, with none.
    """
    for experiment in map(find_experiment, experiment_names()):
        if name in experiment.aliases:
            return experiment, experiment.aliases[name]
    return find_experiment(name), {}


def load_experiment(file: Path) -> Experiment:
    """Read one file; BadExperiment names the file and the key of whatever is wrong."""
    variants = load_variants()
    top = Place(file)
    table = top.convert(read_toml(file), _File)
    cells = _cells(top, table.cells)
    _variants(top, table.variants, variants)
    top.at("metric").all_of([table.metric], METRICS)
    top.at("floor").all_of([table.floor] if table.floor else [], METRICS)
    top.at("agreement").all_of(list(table.agreement), METRICS)
    machines = top.at("machines").all_of(table.machines, MACHINES)
    experiment = Experiment(
        name=file.stem,
        question=table.question,
        metric=table.metric,
        floor=table.floor,
        columns=top.at("columns").all_of(table.columns, METRICS),
        machines=machines,
        argv=table.workload.argv,
        scales={name: _scale(top.at("scales").at(name), name, table, cells, variants) for name in table.scales},
        published=_published(top, table.published, cells, variants, machines),
        expectations=tuple(table.expect),
        notes=table.notes,
        aliases={name: _alias(top.at(f"aliases.{name}"), each, cells) for name, each in table.aliases.items()},
        agreement={name: top.at(f"agreement.{name}").convert(each, Share) for name, each in table.agreement.items()},
        compared=top.at("compared").all_of(table.compared, METRICS),
        unaffected_by=top.at("unaffected_by").all_of(table.unaffected_by, topics()),
    )
    _check_argv(top.at("workload").at("argv"), experiment)
    for number, each in enumerate(table.expect):
        _check_expectation(top.at(f"expect[{number}]"), each, variants, experiment)
    return experiment


def _scale(place: Place, name: str, top: _File, cells: tuple[Cell, ...], known: Mapping[str, Variant]) -> Scale:
    """A scale; what it does not say itself it has from the experiment."""
    content = in_bytes(place, {**top.parameters, **top.scales[name]})
    if isinstance(content.get("trees"), list):
        content["trees"] = " ".join(map(str, content["trees"]))
    table = place.convert(content, _Scale)
    check_machine(place, table, top.workload.argv)
    if table.content in ROOTS and table.filesystem != "xfs":
        place.at("filesystem").fail("has to be xfs: disks of programs have no other")
    if table.content == "stores" and table.filesystem != "ext4":
        place.at("filesystem").fail("has to be ext4: disks of stores have no other")
    here = _cells(place, table.cells) if table.cells else cells
    if table.content == "stores" and not all("store" in cell.as_dict() for cell in here):
        place.at("content").fail("takes cells that each name a 'store'")
    if not all(re.fullmatch(r"[1-9]\d*x[1-9]\d*", tree) for tree in table.trees.split()):
        place.at("trees").fail("takes numbers of files and of their pages, such as '100x4096'")
    for key, wanted in (("file", table.content not in WITHOUT_FILE), ("trees", table.content == "trees")):
        if wanted is not (key in content):
            place.at(key).fail("is missing" if wanted else f"is not for disks of {table.content}")
    return Scale(
        name=name,
        factor=table.factor,
        parameters=Parameters(**{field: getattr(table, field) for field in Parameters.__struct_fields__}),
        cells=here,
        variants=_variants(place, table.variants or top.variants, known),
        repetitions=table.repetitions or top.repetitions,
    )


def _check_argv(place: Place, experiment: Experiment) -> None:
    """Complain about words in braces that stand for nothing at some scale."""
    for scale in experiment.scales.values():
        known = {**scale.parameters.recorded(), "data": "", "repetition": 1}
        for part in experiment.argv:
            try:
                part.format(**known)
            except (LookupError, ValueError, AttributeError, TypeError):
                names = ", ".join(f"{{{name}}}" for name in known)
                place.fail(f"has '{part}', but at scale '{scale.name}' only {names} can stand in braces")


def _cells(place: Place, tables: Sequence[Mapping[str, object]]) -> tuple[Cell, ...]:
    found: dict[Cell, None] = {}
    for number, table in enumerate(tables):
        here = place.at(f"cells[{number}]")
        for cell in expand(here.axes(table)):
            if cell in found:
                here.fail(f"has '{cell.label}', which stands there before")
            found[cell] = None
    return tuple(found)


def _alias(place: Place, content: Mapping[str, object], cells: Iterable[Cell]) -> dict[str, Value]:
    values = place.scalars(content)
    if not any(cell.matches(values) for cell in cells):
        place.fail("matches no cell of this experiment")
    return values


def _variants(place: Place, names: Sequence[str], known: Mapping[str, Variant]) -> tuple[Variant, ...]:
    here = place.at("variants")
    if doubled := [name for name in names if names.count(name) > 1]:
        here.fail(f"names '{doubled[0]}' twice")
    return tuple(known[name] for name in here.all_of(names, known))


def _published(
    top: Place,
    tables: Sequence[object],
    cells: tuple[Cell, ...],
    known: Mapping[str, Variant],
    machines: tuple[str, ...],
) -> tuple[Published, ...]:
    entries = []
    for number, content in enumerate(tables):
        place = top.at(f"published[{number}]")
        table = asdict(place.convert(content, _Published))
        matching = expand(place.at("cell").axes(table["cell"]))
        if len(matching) != 1 or matching[0] not in cells:
            place.at("cell").fail("is not one cell of this experiment")
        values = {} if table["read_gib"] is None else {"read_bytes": table["read_gib"] * _GIB}
        values |= {name: table[name] for name in METRICS if table[name] is not None}
        if not values:
            place.at("read_gib").fail("is missing, and every other metric as well")
        variants = place.at("variants").all_of(table["variants"], known)
        for_machines = place.at("machines").all_of(table["machines"], machines or MACHINES)
        entries.append(Published(cell=matching[0], variants=variants, machines=for_machines, values=values))
    return tuple(entries)


def _check_expectation(place: Place, table: Expectation, known: Mapping[str, Variant], experiment: Experiment) -> None:
    scales = place.at("scales").all_of(table.scales, experiment.scales) or tuple(experiment.scales)
    partial, where = place.at("cell").scalars(table.cell), place.at("where").scalars(table.where)
    matching = {name: [cell for cell in experiment.scales[name].cells if cell.matches(partial)] for name in scales}
    for name, cells in matching.items():
        if not cells:
            place.at("cell").fail(f"matches no cell of the scale '{name}'")
    table.check(place, known, METRICS)
    place.at("machines").all_of(table.machines, experiment.machines or MACHINES)
    relative_to = place.at("relative_to")
    if table.relative_to == PUBLISHED_FIGURE:
        for name, cells in matching.items():
            _check_published(relative_to, experiment, experiment.scales[name], cells, table)
    elif table.relative_to == FLOOR and not experiment.floor:
        relative_to.fail(f"is '{FLOOR}', but the experiment has none")
    elif table.relative_to not in (None, FLOOR, *known):
        relative_to.fail(f"has to be '{PUBLISHED_FIGURE}', '{FLOOR}' or one of {', '.join(known)}")
    if where and table.relative_to not in known:
        place.at("where").fail("is about a variant in 'relative_to'")
    for name, cells in matching.items():
        for cell in cells:
            if where and (cell.where(where) == cell or cell.where(where) not in experiment.scales[name].cells):
                place.at("where").fail(f"makes no other cell of the scale '{name}' of {cell.label}")


def _check_published(
    place: Place, experiment: Experiment, scale: Scale, cells: Iterable[Cell], expectation: Expectation
) -> None:
    """Complain if something was never published that an expectation is relative to."""
    wanted = expectation.machines or experiment.machines or MACHINES
    for metric, variant, cell, machine in product(expectation.metrics, expectation.variants, cells, wanted):
        if metric not in experiment.published_for(scale, variant, cell, machine):
            missing = f"no {metric} was for {variant} and {cell.label} on {machine}"
            place.fail(f"is '{PUBLISHED_FIGURE}', but {missing}")

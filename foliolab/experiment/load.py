# SPDX-License-Identifier: GPL-2.0-only
"""Experiment files: finding them, and turning their TOML into an Experiment or a clear complaint."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args

from foliolab.errors import BadExperiment, UnknownExperiment
from foliolab.experiment.cell import Cell, expand
from foliolab.experiment.machine import MACHINES, applies
from foliolab.experiment.metrics import METRICS
from foliolab.experiment.spec import (
    FLOOR,
    PUBLISHED,
    ROOTS,
    WITHOUT_FILE,
    Content,
    Expectation,
    Experiment,
    Parameters,
    Published,
    Scale,
)
from foliolab.experiment.table import Table, read_toml
from foliolab.experiment.variants import Variant, load_variants
from foliolab.paths import EXPERIMENTS
from foliolab.vm.accel import Wanted
from foliolab.vm.disk import Filesystem

FILESYSTEMS: Mapping[str, Filesystem] = {name: name for name in get_args(Filesystem)}
CONTENTS: Mapping[str, Content] = {name: name for name in get_args(Content)}
ACCELERATORS: Mapping[str, Wanted] = {name: name for name in get_args(Wanted)}
_GIB = 1 << 30


def experiment_names() -> list[str]:
    """The experiments that come with the lab."""
    return sorted(file.stem for file in EXPERIMENTS.glob("*.toml") if file.stem != "variants")


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


def load_experiment(file: Path, known: Mapping[str, Variant] | None = None) -> Experiment:
    """Read one file; BadExperiment names the file and the key of whatever is wrong."""
    variants = load_variants() if known is None else known
    top = read_toml(file)
    question = top.text("question")
    metric = _metric(top, "metric")
    floor = _metric(top, "floor") if "floor" in top else None
    columns = _metrics(top, "columns") if "columns" in top else ()
    machines = _machines(top, MACHINES)
    repetitions = top.integer("repetitions", least=1)
    cells = _cells(top)
    chosen = _variants(top, variants)
    kernels = top.texts("kernels") if "kernels" in top else ()
    notes = top.texts("notes") if "notes" in top else ()
    workload = top.table("workload")
    argv = workload.texts("argv")
    parameters = top.table("parameters")
    names = top.table("scales")
    scales = {
        name: _scale(name, names.table(name).over(parameters), cells, chosen, repetitions, variants, kernels)
        for name in names.keys
    }
    experiment = Experiment(
        name=file.stem,
        question=question,
        metric=metric,
        floor=floor,
        columns=columns,
        machines=machines,
        argv=argv,
        scales=scales,
        published=_published(top, cells, variants, machines),
        expectations=(),
        notes=notes,
        agreement=_agreement(top.table("agreement")) if "agreement" in top else {},
        regress=_metrics(top, "regress") if "regress" in top else (),
    )
    _check_argv(workload, experiment)
    tables = top.tables("expect") if "expect" in top else []
    expectations = tuple(_expectation(table, variants, experiment) for table in tables)
    top.finish()
    return replace(experiment, expectations=expectations)


def _scale(
    name: str,
    table: Table,
    cells: tuple[Cell, ...],
    chosen: tuple[Variant, ...],
    repetitions: int,
    known: Mapping[str, Variant],
    kernels: tuple[str, ...],
) -> Scale:
    """A scale; what it does not say itself it has from the experiment."""
    filesystem = table.text("filesystem")
    if filesystem not in FILESYSTEMS:
        table.fail("filesystem", f"has to be one of {', '.join(FILESYSTEMS)}")
    content = table.text("content") if "content" in table else "zeros"
    if content not in CONTENTS:
        table.fail("content", f"has to be one of {', '.join(CONTENTS)}")
    if content in ROOTS and filesystem != "xfs":
        table.fail("filesystem", "has to be xfs: disks of programs have no other")
    if content == "stores" and filesystem != "ext4":
        table.fail("filesystem", "has to be ext4: disks of stores have no other")
    here = _cells(table) if "cells" in table else cells
    if content == "stores" and not all("store" in cell.as_dict() for cell in here):
        table.fail("content", "takes cells that each name a 'store'")
    trees = table.texts("trees") if content == "trees" else ()
    if not all(re.fullmatch(r"[1-9]\d*x[1-9]\d*", tree) for tree in trees):
        table.fail("trees", "takes numbers of files and of their pages, such as '100x4096'")
    accelerator = table.text("accelerator") if "accelerator" in table else "auto"
    if accelerator not in ACCELERATORS:
        table.fail("accelerator", f"has to be one of {', '.join(ACCELERATORS)}")
    scale = Scale(
        name=name,
        factor=table.number("factor"),
        parameters=Parameters(
            memory_bytes=table.size("memory"),
            file_bytes=0 if content in WITHOUT_FILE else table.size("file"),
            filesystem=FILESYSTEMS[filesystem],
            cpus=table.integer("cpus", least=1),
            read_ahead_kb=table.integer("read_ahead_kb"),
            watermark_scale_factor=table.integer("watermark_scale_factor", least=1),
            deadline_seconds=table.integer("deadline_seconds", least=1),
            fraction=table.number("fraction") if "fraction" in table else None,
            content=CONTENTS[content],
            trees=" ".join(trees),
            work_bytes=table.size("work") if "work" in table else None,
            rounds=table.integer("rounds", least=1) if "rounds" in table else None,
            limit_bytes=table.size("limit") if "limit" in table else None,
            programs=table.truth("programs") if "programs" in table else False,
            writable=table.truth("writable") if "writable" in table else False,
            boot_each=table.truth("boot_each") if "boot_each" in table else False,
            requests_per_second=table.integer("requests_per_second") if "requests_per_second" in table else 0,
            bytes_per_second=table.integer("bytes_per_second") if "bytes_per_second" in table else 0,
            accelerator=ACCELERATORS[accelerator],
        ),
        cells=here,
        variants=_variants(table, known) if "variants" in table else chosen,
        repetitions=table.integer("repetitions", least=1) if "repetitions" in table else repetitions,
        kernels=table.texts("kernels") if "kernels" in table else kernels,
    )
    table.finish()
    return scale


def _check_argv(workload: Table, experiment: Experiment) -> None:
    """Complain about words in braces that stand for nothing at some scale."""
    for scale in experiment.scales.values():
        known = {**scale.parameters.recorded(), "data": "", "repetition": 1}
        for part in experiment.argv:
            try:
                part.format(**known)
            except (LookupError, ValueError, AttributeError, TypeError):
                names = ", ".join(f"{{{name}}}" for name in known)
                workload.fail("argv", f"has '{part}', but at scale '{scale.name}' only {names} can stand in braces")
    workload.finish()


def _cells(table: Table) -> tuple[Cell, ...]:
    return tuple(cell for axes in table.tables("cells") for cell in expand(axes.axes()))


def _variants(table: Table, known: Mapping[str, Variant]) -> tuple[Variant, ...]:
    return tuple(known[name] for name in _names(table, "variants", known))


def _metric(table: Table, key: str) -> str:
    metric = table.text(key)
    if metric not in METRICS:
        table.fail(key, f"is '{metric}', which is not one of {', '.join(METRICS)}")
    return metric


def _metrics(table: Table, key: str) -> tuple[str, ...]:
    return _names(table, key, METRICS)


def _machines(table: Table, known: Collection[str]) -> tuple[str, ...]:
    """The machines that something is restricted to; empty if it is not."""
    return _names(table, "machines", known) if "machines" in table else ()


def _agreement(table: Table) -> dict[str, float]:
    """Tolerances by metric."""
    tolerances = {}
    for name in table.keys:
        if name not in METRICS:
            table.fail(name, f"is not one of {', '.join(METRICS)}")
        tolerances[name] = table.number(name, zero=True)
    table.finish()
    return tolerances


def _names(table: Table, key: str, known: Collection[str]) -> tuple[str, ...]:
    names = table.texts(key)
    for name in names:
        if name not in known:
            table.fail(key, f"names '{name}', which is not one of {', '.join(known)}")
    return names


def _published(
    top: Table, cells: tuple[Cell, ...], known: Mapping[str, Variant], machines: tuple[str, ...]
) -> tuple[Published, ...]:
    entries = []
    for table in top.tables("published") if "published" in top else []:
        matching = expand(table.table("cell").axes())
        if len(matching) != 1 or matching[0] not in cells:
            table.fail("cell", "is not one cell of this experiment")
        variants = _names(table, "variants", known)
        for_machines = _machines(table, machines or MACHINES)
        values = {"read_bytes": table.number("read_gib") * _GIB} if "read_gib" in table else {}
        values |= {name: table.number(name, zero=True) for name in METRICS if name in table}
        if not values:
            table.fail("read_gib", "is missing, and every other metric as well")
        table.finish()
        entries.append(Published(cell=matching[0], variants=variants, machines=for_machines, values=values))
    return tuple(entries)


def _expectation(table: Table, known: Mapping[str, Variant], experiment: Experiment) -> Expectation:
    says = table.text("says")
    scales = _names(table, "scales", experiment.scales)
    partial = table.table("cell").scalars()
    matching = {name: [cell for cell in experiment.scales[name].cells if cell.matches(partial)] for name in scales}
    for name, cells in matching.items():
        if not cells:
            table.fail("cell", f"matches no cell of the scale '{name}'")
    variants = _names(table, "variants", known)
    metrics = _metrics(table, "metrics")
    machines = _machines(table, experiment.machines or MACHINES)
    relative_to = table.text("relative_to") if "relative_to" in table else None
    if relative_to == PUBLISHED:
        every = dict.fromkeys(cell for cells in matching.values() for cell in cells)
        _check_published(table, experiment, every, variants, metrics, machines)
    elif relative_to == FLOOR and not experiment.floor:
        table.fail("relative_to", f"is '{FLOOR}', but the experiment has none")
    elif relative_to is not None and relative_to != FLOOR and relative_to not in known:
        table.fail("relative_to", f"has to be '{PUBLISHED}', '{FLOOR}' or one of {', '.join(known)}")
    where = table.table("where").scalars() if "where" in table else {}
    if where and relative_to not in known:
        table.fail("where", "is about a variant in 'relative_to'")
    for name, cells in matching.items():
        for cell in cells:
            if where and (cell.where(where) == cell or cell.where(where) not in experiment.scales[name].cells):
                table.fail("where", f"makes no other cell of the scale '{name}' of {cell.label}")
    at_least = table.number("at_least", zero=True) if "at_least" in table else None
    at_most = table.number("at_most", zero=True) if "at_most" in table else None
    if at_least is None and at_most is None:
        table.fail("at_least", "is missing, and 'at_most' as well")
    table.finish()
    return Expectation(
        says=says,
        scales=scales,
        cell=tuple(partial.items()),
        variants=variants,
        metrics=metrics,
        relative_to=relative_to,
        where=tuple(where.items()),
        at_least=at_least,
        at_most=at_most,
        machines=machines,
    )


def _check_published(
    table: Table,
    experiment: Experiment,
    cells: Iterable[Cell],
    variants: tuple[str, ...],
    metrics: tuple[str, ...],
    machines: tuple[str, ...],
) -> None:
    """Complain if something was never published that an expectation is relative to."""
    there = {
        (metric, variant, entry.cell, machine)
        for entry in experiment.published
        for metric in entry.values
        for variant in entry.variants
        for machine in MACHINES
        if applies(entry.machines, machine)
    }
    wanted = machines or experiment.machines or MACHINES
    for metric, variant, cell, machine in product(metrics, variants, cells, wanted):
        if (metric, variant, cell, machine) not in there:
            missing = f"no {metric} was for {variant} and {cell.label} on {machine}"
            table.fail("relative_to", f"is '{PUBLISHED}', but {missing}")

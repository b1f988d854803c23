# SPDX-License-Identifier: GPL-2.0-only
"""Experiment files: finding them, and turning their TOML into an Experiment or a clear complaint."""

from collections.abc import Mapping
from pathlib import Path

from foliolab.errors import BadExperiment, UnknownExperiment
from foliolab.experiment.cell import Cell, expand
from foliolab.experiment.metrics import METRICS
from foliolab.experiment.spec import PUBLISHED, Expectation, Experiment, Filesystem, Parameters, Published, Scale
from foliolab.experiment.table import Table, read_toml
from foliolab.experiment.variants import Variant, load_variants
from foliolab.paths import EXPERIMENTS

FILESYSTEMS: Mapping[str, Filesystem] = {"ext4": "ext4", "xfs": "xfs"}
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
    floor = _metric(top, "floor")
    repetitions = top.integer("repetitions", least=1)
    cells = _cells(top)
    chosen = _variants(top, variants)
    notes = top.texts("notes") if "notes" in top else ()
    argv = _argv(top)
    parameters = top.table("parameters")
    names = top.table("scales")
    scales = {
        name: _scale(name, names.table(name).over(parameters), cells, chosen, repetitions, variants)
        for name in names.keys
    }
    published = _published(top, cells, variants)
    expectations = _expectations(top, variants, scales, published)
    top.finish()
    return Experiment(
        name=file.stem,
        question=question,
        metric=metric,
        floor=floor,
        argv=argv,
        scales=scales,
        published=published,
        expectations=expectations,
        notes=notes,
    )


def _scale(
    name: str,
    table: Table,
    cells: tuple[Cell, ...],
    chosen: tuple[Variant, ...],
    repetitions: int,
    known: Mapping[str, Variant],
) -> Scale:
    """A scale; what it does not say itself it has from the experiment."""
    filesystem = table.text("filesystem")
    if filesystem not in FILESYSTEMS:
        table.fail("filesystem", f"has to be one of {', '.join(FILESYSTEMS)}")
    scale = Scale(
        name=name,
        factor=table.number("factor"),
        parameters=Parameters(
            memory_bytes=table.size("memory"),
            file_bytes=table.size("file"),
            filesystem=FILESYSTEMS[filesystem],
            cpus=table.integer("cpus", least=1),
            read_ahead_kb=table.integer("read_ahead_kb"),
            watermark_scale_factor=table.integer("watermark_scale_factor", least=1),
            fraction=table.number("fraction"),
            deadline_seconds=table.integer("deadline_seconds", least=1),
        ),
        cells=_cells(table) if "cells" in table else cells,
        variants=_variants(table, known) if "variants" in table else chosen,
        repetitions=table.integer("repetitions", least=1) if "repetitions" in table else repetitions,
    )
    table.finish()
    return scale


def _argv(top: Table) -> tuple[str, ...]:
    workload = top.table("workload")
    argv = workload.texts("argv")
    for part in argv:
        try:
            part.format(data="", fraction=0.0, repetition=1)
        except (LookupError, ValueError, AttributeError):
            workload.fail(
                "argv", f"has '{part}', but only {{data}}, {{fraction}} and {{repetition}} can stand in braces"
            )
    workload.finish()
    return argv


def _cells(table: Table) -> tuple[Cell, ...]:
    return tuple(cell for axes in table.tables("cells") for cell in expand(axes.axes()))


def _variants(table: Table, known: Mapping[str, Variant]) -> tuple[Variant, ...]:
    return tuple(known[name] for name in _variant_names(table, known))


def _variant_names(table: Table, known: Mapping[str, Variant]) -> tuple[str, ...]:
    names = table.texts("variants")
    for name in names:
        if name not in known:
            table.fail("variants", f"names '{name}', which is not one of {', '.join(known)}")
    return names


def _metric(table: Table, key: str) -> str:
    metric = table.text(key)
    if metric not in METRICS:
        table.fail(key, f"is '{metric}', which is not one of {', '.join(METRICS)}")
    return metric


def _published(top: Table, cells: tuple[Cell, ...], known: Mapping[str, Variant]) -> tuple[Published, ...]:
    entries = []
    for table in top.tables("published") if "published" in top else []:
        matching = expand(table.table("cell").axes())
        if len(matching) != 1 or matching[0] not in cells:
            table.fail("cell", "is not one cell of this experiment")
        entry = Published(
            cell=matching[0],
            variants=_variant_names(table, known),
            read_bytes=table.number("read_gib") * _GIB,
            seconds=table.number("seconds"),
        )
        table.finish()
        entries.append(entry)
    return tuple(entries)


def _expectations(
    top: Table, known: Mapping[str, Variant], scales: Mapping[str, Scale], published: tuple[Published, ...]
) -> tuple[Expectation, ...]:
    tables = top.tables("expect") if "expect" in top else []
    return tuple(_expectation(table, known, scales, published) for table in tables)


def _expectation(
    table: Table, known: Mapping[str, Variant], scales: Mapping[str, Scale], published: tuple[Published, ...]
) -> Expectation:
    says = table.text("says")
    wanted = table.texts("scales")
    for name in wanted:
        if name not in scales:
            table.fail("scales", f"names '{name}', which is not one of {', '.join(scales)}")
    partial = table.table("cell").scalars()
    matching = {name: [cell for cell in scales[name].cells if cell.matches(partial)] for name in wanted}
    for name, cells in matching.items():
        if not cells:
            table.fail("cell", f"matches no cell of the scale '{name}'")
    variants = _variant_names(table, known)
    metrics = table.texts("metrics")
    for metric in metrics:
        if metric not in METRICS:
            table.fail("metrics", f"names '{metric}', which is not one of {', '.join(METRICS)}")
    relative_to = table.text("relative_to")
    if relative_to == PUBLISHED:
        if metrics != ("read_bytes",):
            table.fail("metrics", "can only be read_bytes, the one published count")
        there = {(variant, entry.cell) for entry in published for variant in entry.variants}
        for cell in (cell for cells in matching.values() for cell in cells):
            for variant in variants:
                if (variant, cell) not in there:
                    table.fail("relative_to", f"is '{PUBLISHED}', but nothing was for {variant} and {cell.label}")
    elif relative_to not in known:
        table.fail("relative_to", f"has to be '{PUBLISHED}' or one of {', '.join(known)}")
    at_least = table.number("at_least") if "at_least" in table else None
    at_most = table.number("at_most") if "at_most" in table else None
    if at_least is None and at_most is None:
        table.fail("at_least", "is missing, and 'at_most' as well")
    table.finish()
    return Expectation(says, wanted, tuple(partial.items()), variants, metrics, relative_to, at_least, at_most)

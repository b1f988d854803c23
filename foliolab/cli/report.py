# SPDX-License-Identifier: GPL-2.0-only
"""Show tables of what was measured, beside what was published. They are of what the store holds. Boots nothing."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace

from foliolab.analyse.agreement import Agreement, compare
from foliolab.analyse.rows import Group, group_samples
from foliolab.campaign.sample import Sample
from foliolab.campaign.store import read_samples, store_file
from foliolab.cli.options import add_cells, add_json, add_tables, names_of
from foliolab.device import device_of
from foliolab.errors import NoResult, UnknownCell, UsageError, require_known
from foliolab.experiment.cell import Cell, choose
from foliolab.experiment.load import experiment_names, find_experiment
from foliolab.experiment.metrics import METRICS
from foliolab.experiment.spec import Experiment
from foliolab.experiment.variants import check_name
from foliolab.report import agreement
from foliolab.report.columns import Shown
from foliolab.report.devices import by_device, seconds_columns
from foliolab.report.expected import check, missed_columns
from foliolab.report.markdown import (
    devices_to_table,
    document_table,
    prices_to_table,
    to_markdown,
    to_table,
    variants_to_table,
)
from foliolab.report.section import sections
from foliolab.report.store_prices import PRICES
from foliolab.report.terminal import print_section, terminal
from foliolab.report.view import View, views_of
from foliolab.reproduce.plan import made_by
from foliolab.reproduce.released import read_released

_NONE = "none"
"""The device of disks that take no time."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", help="an experiment's name or .toml file (default: all)")
    parser.add_argument("--scale", help="only this scale")
    parser.add_argument("--variant", metavar="V,...", help="only these variants")
    add_cells(parser)
    parser.add_argument("--machine", help="only this, such as arm64-16k")
    parser.add_argument("--backend", help="only what this backend measured, such as qemu-tcg or model")
    text = f"only of disks that take time as this one's; {_NONE}: that take none"
    parser.add_argument("--device", metavar="PROFILE", help=text)
    text = "of the samples in release/, which are behind README and docs"
    parser.add_argument("--released", action="store_true", help=text)
    form = parser.add_mutually_exclusive_group()
    add_tables(form)
    add_json(form, '{"rows": [...], "verdicts": [...], "agreement": [...]}')
    text = "with --table: a column for this variant under this head, in cells of these values if any are named, and"
    text += " rows for cells and metrics; may be repeated. What was not measured says so, if anything else was"
    parser.add_argument("--column", metavar="HEAD=VARIANT[,AXIS=VALUE,...]", action="append", default=[], help=text)
    parser.add_argument("--metric", metavar="M,...", help="with --column: these (default: the experiment's own)")
    text = "with --table, of stores: a row for each store, with what look-ups and scans cost with the adaptive window"
    text += " against none; for each workload, with price and major faults; or for pairs of works that users want"
    text += " both of"
    parser.add_argument("--prices", choices=PRICES, help=text)
    text = "with --table: for each cell what the adaptive window takes and costs against none, on each timed disk"
    parser.add_argument("--by-device", action="store_true", help=text)
    text = "with --by-device: only seconds, without the adaptive window and with it"
    parser.add_argument("--seconds", action="store_true", help=text)
    text = "with --table: expectations that fail, and by how much"
    parser.add_argument("--missed", action="store_true", help=text)
    text = "exit with 1 if an expectation fails or the model is too far off"
    parser.add_argument("--check", action="store_true", help=text)


def _only(samples: list[Sample], what: str, names: Sequence[str]) -> list[Sample]:
    """The samples whose ``what`` is one of these names; all of them if there are none."""
    if not names:
        return samples
    of_samples = [str(getattr(sample, what)) or _NONE for sample in samples]
    there = dict.fromkeys(of_samples)
    for name in names:
        if name not in there:
            raise NoResult(f"No sample has the {what} '{name}'; there are: {', '.join(there) or 'none at all'}.")
    return [sample for sample, name in zip(samples, of_samples, strict=True) if name in names]


def _cells(samples: Sequence[Sample], experiments: dict[str, Experiment], filters: Sequence[str]) -> tuple[Cell, ...]:
    """Those of samples that match; NoResult if others of the experiments do, UnknownCell if none does."""
    try:
        return choose(list(dict.fromkeys(Cell.of(sample.cell) for sample in samples)), filters)
    except UnknownCell as error:
        choose(_known_cells(experiments), filters)
        raise NoResult(f"Not measured: {error}") from error


def _known_cells(experiments: dict[str, Experiment]) -> list[Cell]:
    scales = (scale for experiment in experiments.values() for scale in experiment.scales.values())
    return list(dict.fromkeys(cell for scale in scales for cell in scale.cells))


def _heads(arguments: argparse.Namespace) -> dict[str, Shown]:
    heads: dict[str, Shown] = {}
    for column in arguments.column:
        head, _, shown = column.partition("=")
        variant, _, cells = shown.partition(",")
        if not head or not variant or head in heads:
            raise UsageError(f"--column '{column}' is no HEAD=VARIANT with a head of its own.")
        heads[head] = Shown(variant, cells)
    if heads and (arguments.variant is not None or not arguments.table):
        raise UsageError("--column is about --table, and chooses the variants itself.")
    if arguments.metric is not None and not heads:
        raise UsageError("--metric chooses the rows of a --table with --column.")
    return heads


def _measured(samples: Sequence[Sample], columns: Sequence[str]) -> list[str]:
    """The variants of columns that were measured, or all if none was; one that was not may be there yet."""
    there = {sample.variant for sample in samples}
    for variant in columns:
        if variant not in there:
            check_name(variant)
    return [variant for variant in columns if variant in there] or [*columns]


def handle(arguments: argparse.Namespace) -> int:
    _require_one_form(arguments)
    heads = _heads(arguments)
    groups, experiments = _wanted(arguments, list(heads.values()))
    views = views_of(groups, experiments)
    comparisons = compare([view.group for view in views], experiments)
    _print(views, comparisons, heads, arguments)
    if arguments.check:
        check((verdict for view in views for verdict in view.verdicts), comparisons)
    return 0


def _require_one_form(arguments: argparse.Namespace) -> None:
    """UsageError for options that are of different tables."""
    if arguments.prices and not (arguments.table and arguments.experiment == "stores"):
        raise UsageError("--prices is about a --table of stores.")
    if arguments.by_device and (not arguments.table or arguments.prices or arguments.column):
        raise UsageError("--by-device is a --table of its own: it goes with neither --prices nor --column.")
    if arguments.missed and (not arguments.table or arguments.prices or arguments.by_device or arguments.column):
        raise UsageError("--missed is a --table of its own: it goes with neither --prices, --by-device nor --column.")
    if arguments.seconds and not arguments.by_device:
        raise UsageError("--seconds is about a table --by-device.")


def _wanted(arguments: argparse.Namespace, columns: Sequence[Shown]) -> tuple[list[Group], dict[str, Experiment]]:
    """What the options leave of groups, only the variants in ``columns`` if there are any; and their experiments.

    What is older is told by all that was measured, also by what options leave out.
    """
    samples = read_released() if arguments.released else read_samples(store_file())
    experiments: dict[str, Experiment] = {}
    if arguments.experiment:
        chosen = find_experiment(arguments.experiment)
        experiments[chosen.name] = chosen
        if arguments.scale is not None:
            chosen.scale(arguments.scale)
        samples = [sample for sample in samples if sample.experiment == chosen.name]
    else:
        measured = {sample.experiment for sample in samples}
        experiments = {name: find_experiment(name) for name in experiment_names() if name in measured}
    if arguments.scale is not None:
        if not any(arguments.scale in experiment.scales for experiment in experiments.values()):
            raise UsageError(f"No experiment that was measured has a scale '{arguments.scale}'.")
        samples = [sample for sample in samples if sample.scale == arguments.scale]
    groups = group_samples(samples)
    samples = [sample for group in groups for sample in group.samples]
    samples = _only(samples, "machine", names_of("--machine", arguments.machine))
    samples = _only(samples, "backend", names_of("--backend", arguments.backend))
    if arguments.device is not None:
        samples = _only(samples, "device", [_NONE if arguments.device == _NONE else device_of(arguments.device).name])
    choose(_known_cells(experiments), [shown.cells for shown in columns if shown.cells])
    variants = _measured(samples, [shown.variant for shown in columns])
    samples = _only(samples, "variant", variants or names_of("--variant", arguments.variant))
    cells = _cells(samples, experiments, arguments.cell)
    keys = {sample.key for sample in samples if Cell.of(sample.cell) in cells}
    left = [replace(each, samples=tuple(sample for sample in each.samples if sample.key in keys)) for each in groups]
    return [group for group in left if group.samples], experiments


def _print(
    views: Sequence[View], comparisons: Sequence[Agreement], heads: dict[str, Shown], arguments: argparse.Namespace
) -> None:
    source = made_by if arguments.released else None
    if arguments.json:
        rows = [row for view in views for row in view.to_json()]
        verdicts = [verdict for view in views for verdict in view.verdicts_to_json()]
        figures = [row for comparison in comparisons for row in agreement.to_json(comparison)]
        print(json.dumps({"rows": rows, "verdicts": verdicts, "agreement": figures}, indent=1))
    elif arguments.table and not views:
        raise NoResult("Nothing was measured that such a table could show.")
    elif not views:
        print(f"Nothing was measured yet; './lab measure {arguments.experiment or 'sparse-mmap'}' does.")
    elif arguments.missed:
        print(document_table(missed_columns(views)), end="")
    elif arguments.by_device:
        if arguments.seconds:
            print("\n".join(document_table(seconds_columns(found)) for found in by_device(views)), end="")
        else:
            print("\n".join(devices_to_table(found, source) for found in by_device(views)), end="")
    elif arguments.prices:
        print("\n".join(prices_to_table(view, arguments.prices, source) for view in views), end="")
    elif heads:
        metrics = names_of("--metric", arguments.metric)
        require_known("There is no metric", metrics, METRICS)
        print("\n".join(variants_to_table(view, heads, metrics, source) for view in views), end="")
    elif arguments.table:
        print("\n".join(to_table(view, source) for view in views), end="")
    elif arguments.markdown:
        print("\n".join(map(to_markdown, sections(views, comparisons))), end="")
    else:
        console = terminal()
        for shown in sections(views, comparisons):
            print_section(console, shown)

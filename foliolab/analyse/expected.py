# SPDX-License-Identifier: GPL-2.0-only
"""Whether what was measured is what the experiment expects."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from foliolab.analyse.rows import Group, Row, paired_medians
from foliolab.arch import applies
from foliolab.campaign.sample import NOT_APPLICABLE
from foliolab.experiment.cell import Cell
from foliolab.experiment.spec import FLOOR, PUBLISHED_FIGURE, Expectation, Experiment


class Status(StrEnum):
    HOLDS = "holds"
    FAILS = "fails"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Verdict:
    """One expectation, for one cell, variant and metric."""

    says: str
    cell: Cell
    variant: str
    metric: str
    relative_to: str | None
    """In words."""
    at_least: float | None
    at_most: float | None
    value: float | None
    """What has to lie within the bounds: a ratio, or the metric itself where it is relative to nothing."""
    status: Status
    reason: str
    """Why there is no value; else empty."""


def judge(experiment: Experiment, group: Group, rows: Sequence[Row]) -> list[Verdict]:
    """All verdicts for one table. What was tried and never succeeded fails; what was not tried is not measured."""
    if group.scale not in experiment.scales:
        return []
    expectations = [
        each
        for each in experiment.expectations
        if applies(each.scales, group.scale) and applies(each.machines, group.machine)
    ]
    return judge_all(expectations, experiment.scales[group.scale].cells, rows, experiment.floor)


def judge_all(
    expectations: Iterable[Expectation], cells: Sequence[Cell], rows: Sequence[Row], floor: str | None = None
) -> list[Verdict]:
    """All verdicts for ``cells``; ``floor`` is the metric that is meant by FLOOR."""
    found = {(row.cell, row.variant): row for row in rows}
    return [
        _judge(floor, expectation, found, cell, variant, metric)
        for expectation in expectations
        for cell in cells
        if cell.matches(expectation.cell)
        for variant in expectation.variants
        for metric in expectation.metrics
    ]


def _judge(
    floor: str | None,
    expectation: Expectation,
    found: Mapping[tuple[Cell, str], Row],
    cell: Cell,
    variant: str,
    metric: str,
) -> Verdict:
    figures = [(cell, variant, metric)]
    if expectation.relative_to == FLOOR:
        figures.append((cell, variant, str(floor)))
    elif expectation.relative_to and expectation.relative_to != PUBLISHED_FIGURE:
        figures.append((cell.where(expectation.where), expectation.relative_to, metric))
    problem = next(filter(None, (_problem(found, figure, cell) for figure in figures)), None)
    value, (status, reason) = None, problem or (Status.NOT_MEASURED, f"{variant} has other repetitions only")
    if not problem and (both := _medians(found, expectation, figures)):
        mine, other = both
        value = mine / other if other else 1.0 if mine == other else None
        # More than nothing is any number of times as much.
        holds = expectation.at_most is None if value is None else _within(value, expectation)
        status = Status.HOLDS if holds else Status.FAILS
        reason = f"{mine:g} instead of none" if value is None else ""
    return Verdict(
        says=expectation.says,
        cell=cell,
        variant=variant,
        metric=metric,
        relative_to=_in_words(expectation),
        at_least=expectation.at_least,
        at_most=expectation.at_most,
        value=value,
        status=status,
        reason=reason,
    )


def _medians(
    found: Mapping[tuple[Cell, str], Row], expectation: Expectation, figures: Sequence[tuple[Cell, str, str]]
) -> tuple[float, float] | None:
    """The figure and what it is to be divided by, over the repetitions that both have; None if there are none."""
    (cell, variant, metric), *_ = figures
    mine, *others = (found[place, name].metrics[each] for place, name, each in figures)
    if others:
        return paired_medians(mine, others[0])
    published = expectation.relative_to == PUBLISHED_FIGURE
    return mine.median, found[cell, variant].published[metric] if published else 1.0


def _problem(
    found: Mapping[tuple[Cell, str], Row], figure: tuple[Cell, str, str], cell: Cell
) -> tuple[Status, str] | None:
    """Why there is no such figure, and what that comes to for a verdict on ``cell``."""
    place, name, metric = figure
    row = found.get((place, name))
    said = name if place == cell else f"{name} with {place.label}"
    if row and set(row.failures) - {NOT_APPLICABLE}:
        return Status.FAILS, f"{said} ended as {', '.join(row.failures)}"
    if not row or not row.n:
        return Status.NOT_MEASURED, f"{said} was not measured"
    return None if metric in row.metrics else (Status.NOT_MEASURED, f"{said} has no {metric}")


def _in_words(expectation: Expectation) -> str | None:
    """What the metric is divided by."""
    where = ", ".join(f"{name} {value}" for name, value in expectation.where.items())
    return f"{expectation.relative_to} with {where}" if where else expectation.relative_to


def _within(value: float, expectation: Expectation) -> bool:
    return (expectation.at_least is None or value >= expectation.at_least) and (
        expectation.at_most is None or value <= expectation.at_most
    )

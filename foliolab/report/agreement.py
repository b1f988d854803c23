# SPDX-License-Identifier: GPL-2.0-only
"""The model against a kernel: columns, and a sentence, for the terminal, for Markdown and for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from foliolab.analyse.agreement import Agreement, AgreementFigure
from foliolab.experiment.metrics import METRICS
from foliolab.report.columns import UNITS, Column, first_of_each, off_by, with_unit


def agreement_columns(comparison: Agreement) -> list[Column]:
    """Cell, variant, three columns for each metric, and the repetitions that both have."""
    places = [next(iter(row.values())) for row in comparison.rows]
    columns = [
        Column(("", "cell"), tuple(first_of_each(place.cell.label for place in places)), 0, left=True),
        Column(("", "variant"), tuple(place.variant for place in places), 0, left=True),
    ]
    for rank, name in enumerate(comparison.metrics, start=2):
        columns += _columns_of(name, [row.get(name) for row in comparison.rows], rank)
    columns.append(Column(("", "n"), tuple(str(place.n) for place in places), 1))
    return columns


def _columns_of(name: str, figures: Sequence[AgreementFigure | None], rank: int) -> Iterator[Column]:
    """Where room is short, how far they are apart has to do."""
    unit, what = UNITS[METRICS[name].kind], with_unit(METRICS[name])
    yield Column((what, "model"), tuple(unit.spell(figure.model) if figure else "" for figure in figures), rank)
    yield Column((what, "kernel"), tuple(unit.spell(figure.kernel) if figure else "" for figure in figures), rank)
    yield Column((what, "difference"), tuple(_difference(figure) if figure else "" for figure in figures), 0)


def _difference(figure: AgreementFigure) -> str:
    """In percent, with a mark if it is too much."""
    text = off_by(figure.difference)
    return text if figure.within else f"BEYOND {text}"


def summary(comparison: Agreement) -> str:
    figures, beyond = comparison.figures, comparison.beyond
    of_metrics = {figure.metric: f"{figure.tolerance * 100:g} %" for figure in figures}
    tolerances = ", ".join(f"{name} {of_metrics.get(name, 'not measured')}" for name in comparison.metrics)
    count = f"{len(beyond)} of {len(figures)}" if beyond else f"None of {len(figures)}"
    return f"{count} figures of the model differ from the kernel's by more than they may ({tolerances})."


def explain(figure: AgreementFigure) -> str:
    place = f"{figure.cell.label}, {figure.variant}, {figure.metric}"
    return f"{place}: {off_by(figure.difference)}, tolerance {figure.tolerance * 100:g} %"


def to_json(comparison: Agreement) -> list[dict[str, Any]]:
    """A row for each figure; sizes in bytes, differences as shares."""
    return [
        {
            **comparison.kernel.to_json(),
            **asdict(figure),
            "cell": figure.cell.as_dict(),
            "difference": figure.difference,
            "within": figure.within,
        }
        for figure in comparison.figures
    ]

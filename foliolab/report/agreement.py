# SPDX-License-Identifier: GPL-2.0-only
"""The model against a kernel: columns, and a sentence, for the terminal, for Markdown and for programs."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from foliolab.analyse.agreement import Agreement, AgreementFigure, AgreementRow
from foliolab.experiment.metrics import METRICS
from foliolab.report.columns import Column, first_of_each
from foliolab.report.figures import UNITS


def title(comparison: Agreement) -> str:
    return f"Model against kernel: {comparison.kernel.title}"


def agreement_columns(comparison: Agreement) -> list[Column]:
    """Cell, variant, three columns for each metric, and the repetitions that both have."""
    rows = comparison.rows
    columns = [
        Column(("", "cell"), tuple(first_of_each(row.cell.label for row in rows)), 0, left=True),
        Column(("", "variant"), tuple(row.variant for row in rows), 0, left=True),
    ]
    for rank, name in enumerate(comparison.metrics, start=2):
        columns += _columns_of(name, rows, rank)
    columns.append(Column(("", "n"), tuple(str(row.n) for row in rows), 1))
    return columns


def _columns_of(name: str, rows: tuple[AgreementRow, ...], rank: int) -> Iterator[Column]:
    """Where room is short, how far they are apart has to do."""
    metric = METRICS[name]
    unit = UNITS[metric.kind]
    what = " ".join(part for part in (*metric.title, unit.name) if part)
    figures = [row.figures.get(name) for row in rows]
    yield Column((what, "model"), tuple(unit.spell(figure.model) if figure else "" for figure in figures), rank)
    yield Column((what, "kernel"), tuple(unit.spell(figure.kernel) if figure else "" for figure in figures), rank)
    yield Column((what, "difference"), tuple(_difference(figure) if figure else "" for figure in figures), 0)


def _difference(figure: AgreementFigure) -> str:
    """In percent, with a mark if it is too much."""
    text = _percent(figure)
    return text if figure.within else f"BEYOND {text}"


def _percent(figure: AgreementFigure) -> str:
    return "from none" if figure.difference is None else f"{figure.difference * 100:+.1f} %"


def summary(comparison: Agreement) -> str:
    """How many figures are too far apart."""
    tolerances = ", ".join(f"{name} {_tolerance(comparison, name)}" for name in comparison.metrics)
    figures, beyond = comparison.figures, comparison.beyond
    count = f"{len(beyond)} of {len(figures)}" if beyond else f"None of {len(figures)}"
    return f"{count} figures of the model differ from the kernel's by more than they may ({tolerances})."


def _tolerance(comparison: Agreement, metric: str) -> str:
    found = [figure.tolerance for _, name, figure in comparison.figures if name == metric]
    return f"{found[0] * 100:g} %" if found else "not measured"


def explain(row: AgreementRow, metric: str, figure: AgreementFigure) -> str:
    """One figure in words."""
    return f"{row.cell.label}, {row.variant}, {metric}: {_percent(figure)}, tolerance {figure.tolerance * 100:g} %"


def to_json(comparison: Agreement) -> list[dict[str, Any]]:
    """A row for each figure; sizes in bytes, differences as shares."""
    return [
        {
            **comparison.kernel.to_json(),
            "cell": row.cell.as_dict(),
            "variant": row.variant,
            "n": row.n,
            "metric": name,
            **asdict(figure),
            "difference": figure.difference,
            "within": figure.within,
        }
        for row, name, figure in comparison.figures
    ]

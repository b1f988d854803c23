# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts as lines of text, one an expectation and one more for each part of it that fails, and as an exit status."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foliolab.analyse.agreement import Agreement
from foliolab.analyse.expected import Status, Verdict
from foliolab.errors import ChecksFailed
from foliolab.grouped import grouped
from foliolab.report import agreement
from foliolab.report.columns import Column
from foliolab.report.view import View


@dataclass(frozen=True)
class Line:
    text: str
    status: Status | None = None
    """None for what is no verdict by itself."""
    style: str = ""
    """On the terminal."""
    detail: bool = False
    """Belongs to the line before it."""


def verdict_lines(verdicts: Sequence[Verdict]) -> list[Line]:
    """An expectation fails if any part does, and holds if all parts that were measured do."""
    lines = []
    for says, members in grouped(verdicts, lambda verdict: verdict.says).items():
        measured = [part for part in members if part.status != Status.NOT_MEASURED]
        failing = [part for part in members if part.status == Status.FAILS]
        status = Status.FAILS if failing else Status.HOLDS if measured else Status.NOT_MEASURED
        gap = f" ({len(measured)} of {len(members)} measured)" if 0 < len(measured) < len(members) else ""
        lines.append(Line(f"{says}{gap}", status))
        lines += [Line(explain(part), detail=True) for part in failing]
    return lines


def explain(verdict: Verdict) -> str:
    """What was found, and what the bounds are."""
    place = f"{verdict.cell.label}, {verdict.variant}, {_metric(verdict)}"
    return f"{place}: {_found(verdict)}, expected {_bounds(verdict)}"


def _metric(verdict: Verdict) -> str:
    return f"{verdict.metric} over {verdict.relative_to}" if verdict.relative_to else verdict.metric


def _found(verdict: Verdict) -> str:
    return verdict.reason if verdict.value is None else f"{verdict.value:.5g}"


def _bounds(verdict: Verdict) -> str:
    bounds = {"at least": verdict.at_least, "at most": verdict.at_most}
    return " and ".join(f"{words} {bound:g}" for words, bound in bounds.items() if bound is not None)


def missed_columns(views: Sequence[View]) -> list[Column]:
    """The parts of expectations that fail: what was aimed at, where, what came, and what was to come."""
    missed = [(view, part) for view in views for part in view.verdicts if part.status == Status.FAILS]
    cells = {
        "aim": [part.says for _, part in missed],
        "cell": [part.cell.label for _, part in missed],
        "where": [
            ", ".join(filter(None, (part.variant, view.group.machine, view.group.device))) for view, part in missed
        ],
        "metric": [_metric(part) for _, part in missed],
        "found": [_found(part) for _, part in missed],
        "aimed at": [_bounds(part) for _, part in missed],
    }
    return [Column(("", title), tuple(column), 0, left=True) for title, column in cells.items()]


def check(verdicts: Iterable[Verdict], comparisons: Sequence[Agreement] = ()) -> None:
    """Raise ChecksFailed if an expectation fails or the model is too far off, or if neither could be judged at all."""
    judged = [verdict for verdict in verdicts if verdict.status != Status.NOT_MEASURED]
    figures = [figure for comparison in comparisons for figure in comparison.figures]
    if not judged and not figures:
        raise ChecksFailed("No expectation could be checked: what they are about was not measured.")
    failed = [verdict for verdict in judged if verdict.status == Status.FAILS]
    sentences = []
    if failed:
        sentences.append(
            f"{len(failed)} of {len(judged)} checks fail; the first: {failed[0].says}: {explain(failed[0])}."
        )
    beyond = [figure for comparison in comparisons for figure in comparison.beyond]
    if beyond:
        sentences.append(
            f"{len(beyond)} of {len(figures)} figures of the model differ from the kernel's by more than they may; "
            f"the first: {agreement.explain(beyond[0])}."
        )
    if sentences:
        raise ChecksFailed(" ".join(sentences))

# SPDX-License-Identifier: GPL-2.0-only
"""What a table is shown with, described once: the terminal and Markdown each write it in their way."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from foliolab.analyse.agreement import Agreement
from foliolab.analyse.differences import Change
from foliolab.analyse.expected import Status
from foliolab.analyse.losses import Matrix, Pair, by_variant, make_pairs
from foliolab.analyse.rows import Row
from foliolab.campaign.sample import NOT_APPLICABLE
from foliolab.experiment.metrics import METRICS, Metric
from foliolab.report import agreement, losses
from foliolab.report.columns import Column, make_columns
from foliolab.report.expected import Line, verdict_lines
from foliolab.report.view import View

_CHANGES = {Change.WORSE: "red", Change.SUSPECTED: "yellow", Change.BETTER: "green"}


@dataclass(frozen=True)
class Section:
    title: str
    columns: Sequence[Column]
    """Empty if there is nothing to show."""
    question: str = ""
    styles: Sequence[str] = ()
    """Of each row on the terminal."""
    groups: Sequence[object] = ()
    """What keeps rows apart there from those before them."""
    remarks: Sequence[str] = ()
    lines: Sequence[Line] = ()


def sections(views: Iterable[View], comparisons: Iterable[Agreement]) -> list[Section]:
    return [*map(of_view, views), *map(of_agreement, comparisons)]


def of_view(view: View) -> Section:
    return Section(
        view.group.title,
        make_columns(view),
        question=view.experiment.question if view.experiment else "",
        styles=[row_style(row, METRICS[view.metric]) for row in view.rows],
        groups=[row.cell for row in view.rows],
        remarks=view.remarks(),
        lines=verdict_lines(view.verdicts),
    )


def row_style(row: Row, metric: Metric) -> str:
    if not row.n:
        return "dim" if set(row.failures) == {NOT_APPLICABLE} else "red"
    if row.ratio is None:
        return ""
    return "bold green" if (row.ratio >= 2 if metric.more_is_better else row.ratio <= 1 / 2) else ""


def of_agreement(comparison: Agreement) -> Section:
    """The model beside a kernel, with what is too far apart in red."""
    status = Status.FAILS if comparison.beyond else Status.HOLDS
    return Section(
        f"Model against kernel: {comparison.kernel.title}",
        agreement.agreement_columns(comparison),
        styles=["" if all(figure.within for figure in row.values()) else "red" for row in comparison.rows],
        groups=[next(iter(row.values())).cell for row in comparison.rows],
        lines=[Line(agreement.summary(comparison), status)],
    )


def of_matrix(matrix: Matrix, *, everything: bool) -> Section:
    """Which workloads get worse, those first: by the metric that decides, or by each; and what it comes to."""
    rows = [Pair(each, None) for each in matrix.differences] if everything else make_pairs(matrix)
    return Section(
        losses.title(matrix),
        losses.loss_columns(matrix, rows) if rows else (),
        styles=[_CHANGES.get(row.deciding.change, "") for row in rows],
        remarks=losses.remarks(matrix) if rows else (),
        lines=list(_conclusions(matrix)),
    )


def _conclusions(matrix: Matrix) -> Iterator[Line]:
    for gap, line in losses.gap_lines(matrix):
        yield Line(line, style="red" if gap.failed else "dim")
    for summary in by_variant(matrix):
        style = "red" if summary.worse else "yellow" if summary.suspected else ""
        yield Line(losses.summary_line(matrix, summary), style=style)
    if conclusion := losses.conclusion(matrix):
        yield Line(conclusion, style="bold")

# SPDX-License-Identifier: GPL-2.0-only
"""Turning verdicts, and how far the model is from kernels, into an exit status."""

from collections.abc import Sequence

from foliolab.analyse.agreement import Comparison
from foliolab.analyse.verdict import Status
from foliolab.errors import ChecksFailed
from foliolab.report.agreement import explain as explain_figure
from foliolab.report.verdicts import explain
from foliolab.report.view import View


def check(views: Sequence[View], comparisons: Sequence[Comparison] = ()) -> None:
    """Raise ChecksFailed if an expectation fails or the model is too far off, or if neither could be judged at all."""
    verdicts = [verdict for view in views for verdict in view.verdicts if verdict.status != Status.NOT_MEASURED]
    figures = [figure for comparison in comparisons for figure in comparison.figures]
    if not verdicts and not figures:
        raise ChecksFailed("No expectation could be checked: what they are about was not measured.")
    failed = [verdict for verdict in verdicts if verdict.status == Status.FAILS]
    sentences = []
    if failed:
        sentences.append(
            f"{len(failed)} of {len(verdicts)} checks fail; the first: {failed[0].says}: {explain(failed[0])}."
        )
    beyond = [figure for comparison in comparisons for figure in comparison.beyond]
    if beyond:
        sentences.append(
            f"{len(beyond)} of {len(figures)} figures of the model differ from the kernel's by more than they may; "
            f"the first: {explain_figure(*beyond[0])}."
        )
    if sentences:
        raise ChecksFailed(" ".join(sentences))

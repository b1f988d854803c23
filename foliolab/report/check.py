# SPDX-License-Identifier: GPL-2.0-only
"""Turning verdicts into an exit status."""

from collections.abc import Sequence

from foliolab.analyse.verdict import Status
from foliolab.errors import ChecksFailed
from foliolab.report.verdicts import explain
from foliolab.report.view import View


def check(views: Sequence[View]) -> None:
    """Raise ChecksFailed if an expectation fails, or if none could be judged at all."""
    verdicts = [verdict for view in views for verdict in view.verdicts if verdict.status != Status.NOT_MEASURED]
    if not verdicts:
        raise ChecksFailed("No expectation could be checked: what they are about was not measured.")
    failed = [verdict for verdict in verdicts if verdict.status == Status.FAILS]
    if failed:
        raise ChecksFailed(
            f"{len(failed)} of {len(verdicts)} checks fail; the first: {failed[0].says}: {explain(failed[0])}."
        )

# SPDX-License-Identifier: GPL-2.0-only
"""How often kernels differ from themselves: columns, a sentence, and rows for programs."""

from collections.abc import Sequence
from typing import Any

from foliolab.analyse.losses import Arm, highest_share, totals
from foliolab.paired import CHANCE
from foliolab.report.columns import Column, percent


def again_columns(arms: Sequence[Arm]) -> list[Column]:
    """A row for each arm."""
    return [
        Column(("", "experiment"), tuple(arm.group.experiment for arm in arms), 0, left=True),
        Column(("", "machine"), tuple(arm.group.machine for arm in arms), 1, left=True),
        Column(("", "kernel"), tuple(arm.variant for arm in arms), 0, left=True),
        Column(("", "n"), tuple(str(arm.n) for arm in arms), 2),
        Column(("", "figures"), tuple(str(len(arm.differences)) for arm in arms), 3),
        Column(("that", "vary"), tuple(str(arm.varying) for arm in arms), 0),
        Column(("false", "alarms"), tuple(str(arm.alarms) for arm in arms), 0),
    ]


def sentence(arms: Sequence[Arm]) -> str:
    comparisons, alarms = totals(arms)
    if not comparisons:
        return "A/A: no kernel was measured twice, in boots enough to tell anything."
    return (
        f"A/A: of {comparisons} comparisons that vary, {alarms} differ at {CHANCE * 100:g} % each, or"
        f" {percent(alarms / comparisons)} %; chance may make it {CHANCE * 100:g} %. The share is at most"
        f" {percent(highest_share(alarms, comparisons))} % (exact binomial, 95 %)."
    )


def to_json(arms: Sequence[Arm]) -> dict[str, Any]:
    """A row for each arm; shares are 0 to 1."""
    comparisons, alarms = totals(arms)
    rows = [
        {
            **arm.group.to_json(),
            "variant": arm.variant,
            "n": arm.n,
            "figures": len(arm.differences),
            "vary": arm.varying,
            "alarms": arm.alarms,
        }
        for arm in arms
    ]
    bound = highest_share(alarms, comparisons) if comparisons else None
    return {"rows": rows, "all": [{"vary": comparisons, "alarms": alarms, "nominal": CHANCE, "at_most": bound}]}

# SPDX-License-Identifier: GPL-2.0-only
"""The figures that many rows come to, and whether these are as expected."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import geometric_mean
from typing import Any, TypeVar

from foliolab.analyse.expected import Verdict, judge_all
from foliolab.analyse.rows import Row, Spread
from foliolab.experiment.cell import Cell
from foliolab.grouped import grouped
from foliolab.simulate.rows import RegretRow
from foliolab.simulate.suite import FIGURES, GROUPS, Suite

_Key = TypeVar("_Key", bound=Hashable)
Multiple = Callable[[RegretRow], float]
"""Of the best fixed window."""
PRICE: Multiple = attrgetter("regret")
TIME: Multiple = attrgetter("time_regret")


@dataclass(frozen=True)
class Regrets:
    """The regret of one variant in several cells, by price or by time."""

    worst: float
    mean: float
    """The geometric one."""


def spreads(
    rows: Iterable[RegretRow], key: Callable[[RegretRow], _Key], multiple: Multiple = PRICE
) -> dict[_Key, Regrets]:
    """What the rows of each key come to."""
    regrets = {name: [*map(multiple, found)] for name, found in grouped(rows, key).items()}
    return {name: Regrets(max(values), geometric_mean(values)) for name, values in regrets.items()}


def by_way(rows: Iterable[RegretRow], multiple: Multiple = PRICE, *, judged_only: bool = False) -> dict[str, Regrets]:
    """What each variant comes to in these rows, or in those of them that are judged only."""
    return spreads((row for row in rows if row.judged_only or not judged_only), lambda row: row.variant, multiple)


def ours(rows: Iterable[RegretRow]) -> list[RegretRow]:
    """``adaptive`` in every cell."""
    return [row for row in rows if row.variant == "adaptive"]


def summary_to_json(rows: Sequence[RegretRow]) -> list[dict[str, Any]]:
    """One for each group and variant, with figures for each device, too, and percentiles of time from 0 to 100.

    That of ``adaptive`` counts the cells where it costs much, and where it loses.
    """
    found = []
    for group, members in grouped(rows, lambda row: row.group).items():
        adaptive = ours(members)
        by_device = {device: _figures(of) for device, of in grouped(members, lambda row: row.device).items()}
        counts = {
            "cells": len(adaptive),
            "over": sum(row.over for row in adaptive),
            "lost": sum(row.lost for row in adaptive),
        }
        for variant, figures in _figures(members).items():
            found.append(
                {
                    "group": group,
                    "variant": variant,
                    **figures,
                    "time_percentiles": _percentiles(TIME(row) for row in members if row.variant == variant),
                    "devices": {device: of[variant] for device, of in by_device.items()},
                    **(counts if variant == "adaptive" else {}),
                }
            )
    return found


def _percentiles(values: Iterable[float]) -> list[float]:
    """From 0 to 100."""
    values = sorted(values)
    return [values[share * (len(values) - 1) // 100] for share in range(101)]


def _figures(rows: Sequence[RegretRow]) -> dict[str, dict[str, float | None]]:
    """All FIGURES of each variant."""
    found: dict[str, dict[str, float | None]] = {}
    for prefix, multiple in (("", PRICE), ("time_", TIME)):
        judged = by_way(rows, multiple, judged_only=True)
        for variant, each in by_way(rows, multiple).items():
            figures = each.mean, each.worst, judged[variant].mean if judged else None
            names = (f"{prefix}{name}" for name in ("mean", "worst", "judged_mean"))
            found.setdefault(variant, {}).update(zip(names, figures, strict=True))
    return found


def verdicts(suite: Suite, rows: Sequence[RegretRow]) -> list[Verdict]:
    """What ``suite`` expects of the figures that these rows come to; the model makes them once."""
    found = [
        Row(
            cell=Cell.of({"group": each["group"]}),
            variant=each["variant"],
            n=1,
            failures={},
            metrics={name: Spread({1: value}) for name in FIGURES if (value := each[name])},
        )
        for each in summary_to_json(rows)
    ]
    return judge_all(suite.expect, [Cell.of({"group": group}) for group in GROUPS], found)

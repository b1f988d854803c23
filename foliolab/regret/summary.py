# SPDX-License-Identifier: GPL-2.0-only
"""The figures that many rows come to, and the bounds for them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from msgspec import structs

from foliolab.errors import ChecksFailed
from foliolab.grouped import grouped
from foliolab.regret.rows import RegretRow
from foliolab.regret.suite import Bounds, Suite


@dataclass(frozen=True)
class Regrets:
    """The regret of one variant in several cells."""

    worst: float
    mean: float
    """The geometric one."""


def spread(rows: Iterable[RegretRow]) -> Regrets:
    """Of at least one row."""
    regrets = [row.regret for row in rows]
    return Regrets(max(regrets), geometric_mean(regrets))


def by_way(rows: Iterable[RegretRow], *, judged_only: bool = False) -> dict[str, Regrets]:
    """What each variant comes to in these rows, or in those of them that are judged only."""
    chosen = (row for row in rows if row.judged_only or not judged_only)
    return {variant: spread(found) for variant, found in grouped(chosen, lambda row: row.variant).items()}


def ours(rows: Iterable[RegretRow]) -> list[RegretRow]:
    """``adaptive`` in every cell."""
    return [row for row in rows if row.variant == "adaptive"]


def summary_to_json(rows: Sequence[RegretRow]) -> list[dict[str, Any]]:
    """One for each group and variant; that of ``adaptive`` counts the cells where it costs much, and where it loses."""
    found = []
    for group, members in grouped(rows, lambda row: row.group).items():
        adaptive, judged = ours(members), by_way(members, judged_only=True)
        counts = {
            "cells": len(adaptive),
            "over": sum(row.over for row in adaptive),
            "lost": sum(row.lost for row in adaptive),
        }
        for variant, each in by_way(members).items():
            figures = {"mean": each.mean, "worst": each.worst, "judged_mean": judged[variant].mean if judged else None}
            found.append({"group": group, "variant": variant, **figures, **(counts if variant == "adaptive" else {})})
    return found


def check(suite: Suite, rows: Sequence[RegretRow]) -> None:
    """Raise ChecksFailed with every bound that ``adaptive`` misses in these rows, and every rival that is no worse."""
    missed = [
        f"{group}: {what}"
        for group, bounds in structs.asdict(suite.bounds).items()
        if (found := [row for row in rows if row.group == group])
        for what in _missed(found, bounds, suite.rivals)
    ]
    if missed:
        raise ChecksFailed(
            f"adaptive misses {len(missed)} bound{'s' if len(missed) != 1 else ''}: {'; '.join(missed)}."
        )


def _missed(rows: Sequence[RegretRow], bounds: Bounds, rivals: Iterable[str]) -> Iterator[str]:
    everywhere = by_way(rows)
    adaptive, judged = everywhere["adaptive"], by_way(rows, judged_only=True).get("adaptive")
    if adaptive.mean > bounds.mean:
        yield f"the geometric mean is {adaptive.mean:.4f}, at most {bounds.mean:.3f} is allowed"
    if judged and judged.mean > bounds.judged:
        yield f"that of what is judged only is {judged.mean:.4f}, at most {bounds.judged:.3f} is allowed"
    if adaptive.worst > bounds.worst:
        yield f"the worst regret is {adaptive.worst:.3f}, at most {bounds.worst:g} is allowed"
    for rival in rivals:
        other = everywhere[rival]
        if other.mean <= adaptive.mean or other.worst <= adaptive.worst:
            here = f"adaptive {adaptive.mean:.4f} and {adaptive.worst:.3f}"
            yield f"{rival} has {other.mean:.4f} and {other.worst:.3f}, {here}"

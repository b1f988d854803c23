# SPDX-License-Identifier: GPL-2.0-only
"""The words of a cover letter: what the series is for, and what the store holds of it."""

import textwrap
from collections.abc import Iterable

from foliolab.campaign.sample import Sample
from foliolab.experiment.spec import Experiment
from foliolab.report.columns import Column, make_columns
from foliolab.report.view import View, make_views

_WIDTH = 72

_OPENING = """\
A fault in a mapped file reads a window around itself, whatever the program
will use of it, and goes on so until a hundred misses stand that no hits
have cancelled. These patches let the window adapt to what reading more was
good for. Besides, administrators choose which sizes of folios the page
cache has, and program text, and mprotect() changes entries in runs. What
each of them does and costs is in its changelog. Each compiles by itself;
the first ones need none of the others.
"""


def letter(samples: Iterable[Sample], experiments: dict[str, Experiment], kernel: str) -> str:
    """The text for the series on the kernel called ``kernel``; every figure is of ``samples``."""
    views = [
        view
        for view in make_views(samples, experiments)
        if not view.modelled and any(sample.kernel.name == kernel for sample in view.group.samples)
    ]
    if not views:
        return (
            f"{_OPENING}\nNothing of this kernel has been measured yet. This does, and a letter that is\n"
            f"written then has the figures:\n\n    ./lab measure sparse-mmap --kernel {kernel}\n"
        )
    return "\n".join([_OPENING, *map(_section, views)])


def _section(view: View) -> str:
    lines = [f"{view.group.title}:", "", *(f"  {line}" for line in _table(make_columns(view))), ""]
    return "\n".join(lines + [line for remark in view.remarks() for line in (*textwrap.wrap(remark, _WIDTH), "")])


def _table(columns: list[Column]) -> list[str]:
    """As wide as a mail can be: of what is of less interest, it has as much as there is room for."""
    while sum(column.width + 2 for column in columns) > _WIDTH and (rank := max(column.rank for column in columns)):
        columns = [column for column in columns if column.rank != rank]
    rows = zip(*((*column.title, *column.cells) for column in columns), strict=True)
    return [
        "  ".join(_aligned(column, text) for column, text in zip(columns, row, strict=True)).rstrip() for row in rows
    ]


def _aligned(column: Column, text: str) -> str:
    return text.ljust(column.width) if column.left else text.rjust(column.width)

# SPDX-License-Identifier: GPL-2.0-only
"""What the adaptive window takes and costs on timed disks, against the same without, and against other kernels."""

from collections.abc import Iterable, Sequence

from foliolab.analyse.rows import place_of
from foliolab.device import device_of
from foliolab.errors import NoResult
from foliolab.experiment.cell import Cell
from foliolab.experiment.metrics import METRICS
from foliolab.grouped import grouped
from foliolab.report.columns import Column, rate, seconds
from foliolab.report.view import View

_PAIRS = ("off", "adaptive"), ("off-mglru", "adaptive-mglru")
"""Without the window and with it, on either LRU. A table is of the first pair that it has a variant of."""


def by_device(views: Iterable[View]) -> list[list[View]]:
    """Those that differ in nothing but the timed disk together, that with the least latency first.

    NoResult if there are none.
    """
    timed = [view for view in views if view.group.device]
    if not timed:
        raise NoResult("Nothing was measured on timed disks.")
    timed.sort(key=lambda view: device_of(view.group.device).latency_us)
    return list(grouped(timed, lambda view: place_of(view.group)[:-1]).values())


def device_columns(views: Sequence[View]) -> list[Column]:
    """A row for each cell. For each disk there are columns for the seconds of the variant with the window, and for its
    metric of the table, over those of the variant without; for the seconds of the latter; and for those of each other
    variant and kernel over them.

    What was not measured is blank, and what was measured in no cell has no column.
    """
    rows = {(row.cell, view.group.device, row.variant): row for view in views for row in view.rows}
    cells = list(dict.fromkeys(cell for cell, *_ in rows))
    variants = list(dict.fromkeys(variant for *_, variant in rows))
    before, after = next((pair for pair in _PAIRS if set(pair) & set(variants)), _PAIRS[0])
    devices = [view.group.device for view in views]

    def median(cell: Cell, device: str, variant: str, metric: str) -> float | None:
        row = rows.get((cell, device, variant))
        return row.metrics[metric].median if row and metric in row.metrics else None

    def over(cell: Cell, device: str, metric: str, variant: str) -> str:
        without, with_it = median(cell, device, before, metric), median(cell, device, variant, metric)
        return rate(with_it / without) if without and with_it is not None else ""

    def taken(cell: Cell, device: str) -> str:
        without = median(cell, device, before, "seconds")
        return "" if without is None else seconds(without)

    others = [
        (variant, device)
        for variant in variants
        if variant not in (before, after)
        for device in devices
        if any((cell, device, variant) in rows for cell in cells)
    ]
    metrics = {"seconds": "seconds", " ".join(METRICS[views[0].metric].title).strip(): views[0].metric}
    return [
        Column(("", "cell"), tuple(cell.label for cell in cells), 0, left=True),
        *(
            Column((f"{title}:", device), tuple(over(cell, device, metric, after) for cell in cells), 0)
            for title, metric in metrics.items()
            for device in devices
        ),
        *(
            Column((f"seconds of {before}:", device), tuple(taken(cell, device) for cell in cells), 0)
            for device in devices
        ),
        *(
            Column(
                (f"{variant} over {before}:", device),
                tuple(over(cell, device, "seconds", variant) for cell in cells),
                0,
            )
            for variant, device in others
        ),
    ]

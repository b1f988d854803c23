# SPDX-License-Identifier: GPL-2.0-only
"""What look-ups and scans of real stores cost under ``adaptive``, against the same with every rule off."""

from collections.abc import Iterator

from foliolab.errors import NoResult
from foliolab.report.columns import Column
from foliolab.report.view import View

_KINDS = {"look-ups": ("uniform", "zipf"), "scans": ("forward", "backward", "check", "compact", "index")}
_WINDOWS_KB = (128, 4096)
_NAMES = {"lmdb": "LMDB", "mdbx": "MDBX", "bbolt": "bbolt", "sqlite": "SQLite", "lucene": "Lucene"}
_TIMES = 2
"""As large as memory the database is."""


def price_columns(view: View) -> list[Column]:
    """A row for each store, a column for each kind of work and window. NoResult if one was not measured."""
    prices = {
        (cell["store"], cell["workload"], cell["read_ahead_kb"], row.variant): row.metrics["price_bytes"].median
        for row in view.rows
        if row.n and (cell := row.cell.as_dict())["hint"] == "none" and cell["times"] == _TIMES
    }

    def ratios(store: str, kind: str, window: int) -> Iterator[float]:
        for workload in _KINDS[kind]:
            before, after = (prices.get((store, workload, window, variant)) for variant in ("off", "adaptive"))
            if before and after:
                yield after / before

    def change(store: str, kind: str, window: int) -> str:
        found = list(ratios(store, kind, window))
        if not found:
            raise NoResult(f"No {kind} of {store} were measured with and without the adaptive window.")
        return _range(min(found), max(found))

    return [
        Column(("", "no hint, `read_ahead_kb`"), tuple(_NAMES.values()), 0, left=True),
        *(
            Column(("", f"{kind}, {window}"), tuple(change(store, kind, window) for store in _NAMES), 0)
            for window in _WINDOWS_KB
            for kind in _KINDS
        ),
    ]


def _range(least: float, most: float) -> str:
    few = most <= 1 / 4
    ends = [f"1/{1 / ratio:.0f}" if few else f"{round((ratio - 1) * 100):+d}" for ratio in (least, most)]
    spelled = " to ".join(dict.fromkeys(end.replace("+0", "0") for end in ends))
    return spelled if few else f"{spelled} %"

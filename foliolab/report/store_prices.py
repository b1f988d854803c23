# SPDX-License-Identifier: GPL-2.0-only
"""What real stores cost with the adaptive window, against the same without."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from foliolab.analyse.rows import Row, Spread, ordered, paired_medians, quotient
from foliolab.errors import NoResult
from foliolab.experiment.cell import Cell
from foliolab.report.columns import Column
from foliolab.report.view import View
from foliolab.toml import Place, Text, Value, read_toml

_FILE = Path(__file__).with_suffix(".toml")


class _PriceTables(Struct, frozen=True, forbid_unknown_fields=True):
    windows: tuple[int, ...]
    """KiB."""
    times: int
    """As large as memory the database is."""
    kinds: Mapping[str, tuple[Text, ...]]
    """Workloads of each kind."""
    stores: Mapping[str, tuple[Text, Text, Text]]
    """By name, in the order of rows: a title, and what its users call ``uniform`` and ``compact``."""


@cache
def _shown() -> _PriceTables:
    return Place(_FILE).convert(read_toml(_FILE), _PriceTables)


_BEFORE = ("off", "unpatched", "off-mglru", "unpatched-mglru", "debian")
"""Variants without anything of ours, or with all of it off."""
_PAIR = ("uniform", "compact")
"""Workloads that users want both of."""
_AS_GOOD = 1.05
"""A setting that is no more than so many times as dear as another is as good."""
_MIB = 1 << 20
_METRICS = {"price_bytes": ("price", _MIB, 0.03, 2 * _MIB), "major_faults": ("faults", 1, 0.1, 16)}
"""What a metric is called, its unit, and what a loss exceeds: a share, and a difference."""
PRICED = tuple(_METRICS)
"""What the table of workloads has."""


def kind_columns(view: View) -> list[Column]:
    """A row for each store, a column for each kind of work and window. NoResult if one was not measured."""
    prices, shown, stock = _prices(view), _shown(), _stock(view)

    def change(store: str, kind: str, window: int) -> str:
        places = [(store, workload, window, "none") for workload in shown.kinds[kind]]
        found = [
            ratio
            for place in places
            if (ratio := quotient(prices.get((*place, "adaptive")), prices.get((*place, stock))))
        ]
        if not found:
            raise NoResult(f"No {kind} of {store} were measured with and without the adaptive window.")
        return _range(min(found), max(found))

    return [
        Column(("", "no hint, `read_ahead_kb`"), tuple(title for title, *_ in shown.stores.values()), 0, left=True),
        *(
            Column(("", f"{kind}, {window}"), tuple(change(store, kind, window) for store in shown.stores), 0)
            for window in shown.windows
            for kind in shown.kinds
        ),
    ]


def _range(least: float, most: float) -> str:
    few = most <= 1 / 4
    ends = [f"1/{1 / ratio:.0f}" if few else f"{round((ratio - 1) * 100):+d}" for ratio in (least, most)]
    spelled = " to ".join(dict.fromkeys(end.replace("+0", "0") for end in ends))
    return spelled if few else f"{spelled} %"


def pair_columns(view: View) -> list[Column]:
    """A row for each work of pairs that users want both of, columns for prices in MiB by every setting.

    Bold is what is not as good as the better of hint and none with what there was before, which comes first. NoResult
    if something was not measured.
    """
    prices, shown = _prices(view), _shown()
    stock, *ours = variants = _variants(view)
    works = {
        (store, workload): f"{title}: {words}"
        for store, (title, *pair) in shown.stores.items()
        for workload, words in zip(_PAIR, pair, strict=True)
    }

    def price(work: tuple[str, str], window: int, variant: str, hint: str = "none") -> Spread:
        found = prices.get((*work, window, hint, variant))
        if found is None:
            raise NoResult(f"{' '.join(work)} was not measured with {variant}, read_ahead_kb {window}, hint {hint}.")
        return found

    def cell(work: tuple[str, str], window: int, variant: str) -> str:
        mine = price(work, window, variant)
        others = price(work, window, stock), price(work, shown.windows[0], stock, "own")
        text = f"{mine.median / _MIB:,.0f}"
        worse = variant in ours and any((quotient(mine, other) or 0) > _AS_GOOD for other in others)
        return f"**{text}**" if worse else text

    hints = (f"{price(work, shown.windows[0], stock, 'own').median / _MIB:,.0f}" for work in works)
    return [
        Column(("", "price"), tuple(works.values()), 0, left=True),
        Column(("", "hint"), tuple(hints), 0),
        *(
            Column(("", f"{window}: {variant}"), tuple(cell(work, window, variant) for work in works), 0)
            for window in shown.windows
            for variant in variants
        ),
    ]


def _variants(view: View) -> list[str]:
    """A view's variants, those without ours first."""
    return ordered(dict.fromkeys(row.variant for row in view.rows), _BEFORE)


def _stock(view: View) -> str:
    """The variant without anything of ours; empty if there is none."""
    return next((variant for variant in _variants(view) if variant in _BEFORE), "")


def _prices(view: View) -> dict[tuple[Value, Value, Value, Value, str], Spread]:
    """By store, workload, window, hint and variant."""
    return {
        (cell["store"], cell["workload"], cell["read_ahead_kb"], cell["hint"], row.variant): row.metrics["price_bytes"]
        for row in view.rows
        if row.n and (cell := row.cell.as_dict())["times"] == _shown().times
    }


def workload_columns(view: View) -> list[Column]:
    """A row for each workload, columns for price in MiB and major faults with each window; losses are bold.

    Beside them the price with the engine's own hint, where that was measured.
    """
    rows = {(row.cell, row.variant): row for row in view.rows if row.n}
    plain = [row.cell.where({"read_ahead_kb": 0}) for row in view.rows if row.cell.as_dict()["hint"] == "none"]
    workloads = list(dict.fromkeys(plain))

    def row(workload: Cell, window: int, variant: str, hint: str = "none") -> Row | None:
        return rows.get((workload.where({"read_ahead_kb": window, "hint": hint}), variant))

    stock = _stock(view)
    columns = [Column(("", "workload"), tuple(_names(workloads)), 0, left=True)]
    for window in _shown().windows:
        for metric, (title, *_) in _METRICS.items():
            pairs = [(row(each, window, stock), row(each, window, "adaptive")) for each in workloads]
            before = tuple(_figure(plain, metric) for plain, _ in pairs)
            after = tuple(_against(plain, adaptive, metric) for plain, adaptive in pairs)
            columns += [Column((f"{window}: {title},", stock), before, 0), Column(("", "adaptive"), after, 0)]
            hints = tuple(_figure(row(each, window, stock, "own"), metric) for each in workloads)
            if metric == view.metric and any(hints):
                columns.append(Column(("", "hint"), hints, 0))
    return columns


def _names(workloads: list[Cell]) -> Iterator[str]:
    """What tells them from each other."""
    several = len({cell.as_dict()["store"] for cell in workloads}) > 1
    for axes in (cell.as_dict() for cell in workloads):
        store, *_ = _shown().stores.get(str(axes["store"]), (axes["store"],))
        yield f"{store}, {axes['workload']}" if several else str(axes["workload"])


def _figure(row: Row | None, metric: str) -> str:
    return f"{row.metrics[metric].median / _METRICS[metric][1]:,.0f}" if row else ""


def _against(stock: Row | None, adaptive: Row | None, metric: str) -> str:
    """The figure, and by how much it differs where that is of account, over the repetitions that both have."""
    figure = _figure(adaptive, metric)
    both = paired_medians(stock.metrics[metric], adaptive.metrics[metric]) if stock and adaptive else None
    if not both:
        return figure
    _, _, share, least = _METRICS[metric]
    before, after = both
    if not after or abs(after - before) < least:
        return figure
    ratio = after / before if before else 0.0
    if ratio <= 1 / 4 or ratio >= 2:
        figure += f" ({f'1/{1 / ratio:.0f}' if 0 < ratio < 1 else f'{ratio:.1f} times' if ratio else 'from 0'})"
    elif round(ratio * 100) != 100:
        figure += f" ({round((ratio - 1) * 100):+d} %)"
    return f"**{figure}**" if after > before * (1 + share) else figure


def shown_rows(view: View, table: str) -> tuple[Row, ...]:
    """The rows that a table of PRICES is made of."""
    shown, stock = _shown(), _stock(view)
    kinds = [workload for workloads in shown.kinds.values() for workload in workloads]

    def has(row: Row) -> bool:
        cell = row.cell.as_dict()
        plain, window = cell["hint"] == "none", cell["read_ahead_kb"]
        if window not in shown.windows:
            return False
        if table == "workloads":
            return row.variant == stock or (row.variant == "adaptive" and plain)
        if cell["times"] != shown.times or cell["store"] not in shown.stores:
            return False
        if table == "pairs":
            hinted = row.variant == stock and window == shown.windows[0]
            return cell["workload"] in _PAIR and (plain or hinted)
        return plain and row.variant in (stock, "adaptive") and cell["workload"] in kinds

    return tuple(filter(has, view.rows))


PRICES = {"stores": kind_columns, "workloads": workload_columns, "pairs": pair_columns}
"""What the rows of a table of prices can be."""

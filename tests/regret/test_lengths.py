# SPDX-License-Identifier: GPL-2.0-only
"""Random access that ends at any time, and not only where the suite looks."""

from dataclasses import replace
from math import exp

from foliolab.model.library import Pattern
from foliolab.progress import Reporter
from foliolab.regret.rows import make_rows
from foliolab.regret.suite import SUITE, Case

SHARES = (0.001, 0.003, 0.006, 0.01, 0.011, 0.012, 0.013, 0.014, 0.015, 0.017, 0.02, 0.03, 0.1, 0.3, 1)
"""Of the file's pages. At three eighths of the price of reading it all, 1.2 %, regions begin to fill up."""


def test_random_access_costs_most_if_it_ends_once_regions_have_filled_up() -> None:
    nvme = [device for device in SUITE.devices if device.name == "nvme"]
    suite = replace(SUITE, times_memory=(0.5,), read_ahead_kb=(128, 8192), devices=tuple(nvme))
    cases = [Case(f"{share:g}", Pattern("random"), int(share * SUITE.file_pages)) for share in SHARES]
    rows = [row for row in make_rows(suite, cases, nvme, Reporter()) if row.variant == "folio"]
    small, large = (
        {float(row.cell.pattern): row.regret for row in rows if row.cell.read_ahead_kb == window_kb}
        for window_kb in suite.read_ahead_kb
    )
    assert len(small) == len(large) == len(SHARES)
    assert all(regret < 1.05 for share, regret in large.items() if share <= 0.01)
    assert all(regret < 1.4 for share, regret in large.items() if share >= 0.1)
    worst = max(large, key=lambda share: large[share])
    assert 0.012 < worst < 0.02
    # The least that any policy can promise for all lengths, if it waits for a third of that price: docs/findings.md.
    a = (1 + 1 / 3) * exp(1 - 1 / 3)
    assert a / (a - 1) < large[worst] < 3.2
    assert 1.2 < max(small.values()) < 1.35

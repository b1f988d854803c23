# SPDX-License-Identifier: GPL-2.0-only
"""Random access that ends at any time, and not only where the suite looks."""

from msgspec.structs import replace

from foliolab.model.library import Pattern
from foliolab.simulate.rows import make_rows
from foliolab.simulate.suite import Case, load_suite
from tests.simulate.small import FAST

SUITE = load_suite()
SHARES = (0.001, 0.003, 0.006, 0.01, 0.011, 0.012, 0.013, 0.014, 0.015, 0.017, 0.02, 0.03, 0.1, 0.3, 1)
"""Of the file's pages. At three eighths of the price of reading it all, 1.1 %, regions begin to fill up."""


def test_random_access_costs_most_if_it_ends_once_regions_have_filled_up() -> None:
    suite = replace(SUITE, times_memory=(0.5,), read_ahead_kb=(128, 8192))
    cases = [Case(f"{share:g}", Pattern("random"), int(share * SUITE.file_pages)) for share in SHARES]
    rows = [row for row in make_rows(suite, cases, [FAST]) if row.variant == "adaptive"]
    small, large = (
        {float(row.pattern): row.regret for row in rows if row.read_ahead_kb == window_kb}
        for window_kb in suite.read_ahead_kb
    )
    assert len(small) == len(large) == len(SHARES)
    for share, regret in large.items():
        print(f"{share:g}: {small[share]:.2f} {regret:.2f}")  # -rP
    assert all(regret < 1.1 for share, regret in large.items() if share <= 0.01)
    assert all(regret < 1.4 for share, regret in large.items() if share >= 0.1)
    assert max(large.values()) < 3.5
    assert max(small.values()) < 1.35

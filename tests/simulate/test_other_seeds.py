# SPDX-License-Identifier: GPL-2.0-only
"""Data that a program comes back to, with other numbers than the suite's: those may just be lucky."""

from collections import defaultdict
from collections.abc import Iterator
from statistics import geometric_mean

from msgspec.structs import replace

from foliolab.device import load_devices
from foliolab.simulate.rows import make_rows
from foliolab.simulate.suite import Case, load_suite

SUITE = load_suite()
DEVICES = list(load_devices().values())
SEEDS = range(10, 80, 10)
"""What the seeds of a case are raised by."""


def reseeded(case: Case, more: int) -> Case:
    pattern, *then = (replace(each, seed=each.seed + more) for each in (case.pattern, *case.then))
    return replace(case, pattern=pattern, then=tuple(then))


def regrets(name: str) -> Iterator[tuple[str, int, list[float]]]:
    """Device, read_ahead_kb and one regret for each seed, where nothing depends on what is measured of a disk."""
    (case,) = (case for case in SUITE.cases if case.name == name)
    suite = replace(SUITE, times_memory=(3,), read_ahead_kb=(128, 4096))
    found = defaultdict(list)
    for more in SEEDS:
        for row in make_rows(suite, [reseeded(case, more)], DEVICES):
            if row.variant == "adaptive-told":
                found[row.device, row.read_ahead_kb].append(row.regret)
    for (device, window_kb), all_seeds in found.items():
        print(f"{name} {device} {window_kb}: {geometric_mean(all_seeds):.2f}, worst {max(all_seeds):.2f}")  # -rP
        yield device, window_kb, all_seeds


def test_what_comes_back_is_read_in_time() -> None:
    cases = list(regrets("come-back"))
    assert len(cases) == len(DEVICES) * 2
    for device, window_kb, all_seeds in cases:
        assert geometric_mean(all_seeds) < (1.08 if window_kb == 128 else 1.75), (device, window_kb)
        assert max(all_seeds) < (1.23 if window_kb == 128 else 2.1), (device, window_kb)


def test_areas_of_which_little_is_used_cost_most() -> None:
    cases = list(regrets("areas"))
    assert len(cases) == len(DEVICES) * 2
    for device, window_kb, all_seeds in cases:
        bound = 2.2 if device in ("hdd", "remote") else 3.9 if window_kb == 128 else 3.6
        assert max(all_seeds) < bound, (device, window_kb)

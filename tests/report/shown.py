# SPDX-License-Identifier: GPL-2.0-only
"""Samples of a small experiment, and the tables that are made of them."""

from dataclasses import replace
from typing import Any

from foliolab.campaign.sample import Sample
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.spec import Published
from foliolab.report.section import of_view
from foliolab.report.terminal import print_section
from foliolab.report.view import View, make_views
from tests.printed import printed
from tests.samples import sample

GIB = 1 << 30
MODEST = {"floor_bytes": GIB // 64, "read_requests": 32768, "major_faults": 4000, "seconds": 12.5}
STRIDE: dict[str, str | int] = {"pattern": "stride", "stride": 2053}


def measured() -> list[Sample]:
    """Two cells, two boots, one of the measurements a crash."""

    def one(variant: str, gib: float, number: int, cell: dict[str, str | int]) -> Sample:
        named = "unpatched" if variant == "unpatched" else "patched"
        metrics = {**MODEST, "read_bytes": int(gib * GIB)}
        kernel = f"k-{named}"
        return sample(variant=variant, named=named, kernel=kernel, repetition=number, cell=cell, metrics=metrics)

    samples = []
    for number in (1, 2):
        samples += [
            one("unpatched", 28 + number, number, {"pattern": "random"}),
            one("off", 28.5 + number, number, {"pattern": "random"}),
            one("published", 1.25, number, {"pattern": "random"}),
            one("unpatched", 51.198, number, STRIDE),
            one("off", 51.198, number, STRIDE),
        ]
    crash = sample(variant="published", cell=STRIDE, kernel="k-patched", outcome="guest-crash", sentence="Oops: int3.")
    return [*samples, crash]


def view(*samples: Sample) -> View:
    (only,) = make_views(samples or measured(), {"sparse-mmap": find_experiment("sparse-mmap")})
    return only


def terminal(width: int, shown: View | None = None) -> list[str]:
    return printed(lambda console: print_section(console, of_view(shown or view())), width)


def text_view(arch: str = "arm64", scale: str = "quick", backend: str = "qemu-tcg", **published: Any) -> View:
    """An experiment about a share, with columns of its own."""
    random = Cell.of({"pattern": "random"})
    values = {"contpte_share": 0.05, "tlb_entries": 8000.0, "cached_bytes": float(512 << 20), "seconds": 0.0834}
    experiment = replace(
        find_experiment("sparse-mmap"),
        metric="contpte_share",
        floor=None,
        columns=("tlb_entries", "cached_bytes", "file_thp_aligned_16kb", "read_bytes"),
        published=(Published(random, ("off",), ("arm64-4k",), values),),
        expectations=(),
    )
    place: dict[str, Any] = {"arch": arch, "scale": scale, "backend": backend}
    counts = {**MODEST, "read_bytes": 65 << 20, "cached_bytes": 66 << 20}
    off = {**counts, "contpte_share": 0.0625, "tlb_entries": 15500, "file_thp_aligned_16kb": 0.46}
    more = {**counts, "contpte_share": 0.96875, "tlb_entries": 1024, "file_thp_aligned_16kb": 0.0}
    samples = [sample(metrics=off, **place), sample(variant="published", **{"metrics": more, **place, **published})]
    (only,) = make_views(samples, {"sparse-mmap": experiment})
    return only

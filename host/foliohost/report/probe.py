# SPDX-License-Identifier: GPL-2.0-only
"""What a probe found of a disk, as text for the terminal and as JSON."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from foliohost.costs import Cost, Estimate
from foliohost.doubts import doubts
from foliohost.probe import DEEPEST, SIZES, Probe
from foliohost.processes import PAGE_BYTES
from foliohost.report.diagnosis import on_device
from foliohost.sizes import count, size
from foliohost.terminal import Column, Terminal, print_table

_PAGE_KB = PAGE_BYTES // 1024


def to_json(path: Path, probe: Probe) -> dict[str, Any]:
    """The figures with their ranges, what they rest on, and what makes them doubtful."""
    return {
        "path": str(path.absolute()),
        "files": [str(file.absolute()) for file in probe.files],
        "data_bytes": probe.data_bytes,
        "device": probe.device.name,
        "rotational": probe.device.rotational,
        "window_kb": probe.device.read_ahead_kb,
        "page_bytes": PAGE_BYTES,
        "seconds": round(probe.seconds, 3),
        "reads": probe.reads,
        "read_bytes": probe.read_bytes,
        **_cost_json(probe.cost),
        "request_kb": probe.cost.recommended_kb,
        "deep": {"depth": DEEPEST, **_cost_json(probe.deep), "request_kb": probe.deep.recommended_kb},
        "times": [
            {"depth": depth, "size_kb": pages * _PAGE_KB, "us": round(median(each), 1), "rounds": len(each)}
            for depth, times in {1: probe.times, **probe.deep_times}.items()
            for pages, each in times.items()
        ],
        "first_us": round(probe.first_us, 1),
        "again_us": round(probe.again_us, 1),
        "others_read_bytes": probe.others_read_bytes,
        "others_writes": probe.others_writes,
        "warnings": doubts(probe),
    }


def _cost_json(cost: Cost) -> dict[str, Any]:
    return {
        "request_us": round(cost.request_us.value, 2),
        "request_us_range": _range(cost.request_us),
        "page_us": round(cost.page_us.value, 3),
        "page_us_range": _range(cost.page_us),
        "request_kb_range": _range(cost.request_kb),
        "disagreement": round(cost.disagreement, 3),
        "certain": cost.certain,
    }


def _range(estimate: Estimate) -> list[float]:
    return [round(estimate.low, 3), round(estimate.high, 3)]


def print_probe(console: Terminal, path: Path, probe: Probe) -> None:
    """Print the figures in words, the times of all sizes and depths, and what makes them doubtful."""
    device = probe.device
    console.out(f"{path}: {on_device(device.name, device.rotational, device.read_ahead_kb)}")
    files = f" of {len(probe.files)} files" if len(probe.files) > 1 else ""
    console.out(
        f"{probe.seconds:.1f} s: {count(probe.reads)} reads, {size(probe.read_bytes)}, "
        f"at random places of {size(probe.data_bytes)}{files}.",
        style="dim",
    )
    console.out(f"A request costs {_words(probe.cost)}.")
    console.out(f"With {DEEPEST} in flight it costs {_words(probe.deep)}.")
    console.out(f"request_kb: {probe.cost.recommended_kb}", style="bold")
    console.out()
    print_table(console, _columns(probe))
    for doubt in doubts(probe):
        console.out(doubt, style="yellow")


def _words(cost: Cost) -> str:
    page = f"each page of {_PAGE_KB} KiB {_with_range(cost.page_us)} us"
    return f"{_with_range(cost.request_us)} us and {page}: as much as reading {_with_range(cost.request_kb)} KiB"


def _with_range(estimate: Estimate) -> str:
    return f"{_digits(estimate.value)} ({_digits(estimate.low)} to {_digits(estimate.high)})"


def _digits(number: float) -> str:
    return count(number) if number >= 10 else f"{number:.1f}"


def _columns(probe: Probe) -> list[Column]:
    speeds = [pages * PAGE_BYTES / median(probe.times[pages]) * 1e6 / (1 << 20) for pages in SIZES]
    depths = {1: probe.times, **probe.deep_times}
    return [
        Column(("", "KiB"), tuple(count(pages * _PAGE_KB) for pages in SIZES), 0),
        Column(("", "us"), tuple(count(median(probe.times[pages])) for pages in SIZES), 0),
        Column(("", "MiB/s"), tuple(map(count, speeds)), 0),
        *(
            Column(
                ("reads/s, depth" if depth == 1 else "", str(depth)),
                tuple(count(1e6 / median(times[pages])) if pages in times else "" for pages in SIZES),
                depth,
            )
            for depth, times in depths.items()
        ),
    ]

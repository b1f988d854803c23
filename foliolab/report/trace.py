# SPDX-License-Identifier: GPL-2.0-only
"""Traces, and what they come to when they are replayed, as tables for the terminal."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from foliolab.analyse.agreement import apart
from foliolab.errors import NoResult
from foliolab.report.columns import Column, count, mib, off_by, seconds
from foliolab.report.terminal import print_table, print_title
from foliolab.trace.replay import Figures, Replay

_FIGURES: Sequence[tuple[str, str, Callable[[float], str], int]] = (
    ("read MiB", "read_bytes", mib, 0),
    ("requests", "read_requests", count, 3),
    ("major faults", "major_faults", count, 0),
)
"""Title, name, how it is spelled, and the rank of its columns."""


def print_replays(console: Console, replays: Sequence[Replay], device: str = "") -> None:
    """Print what the model predicts beside what guests did, and how far these are apart; seconds are on ``device``."""
    print_title(console, "Traces in the model of the page cache")
    columns = place_columns(replays, rank_of_memory=2)
    for title, name, spell, rank in _FIGURES:
        columns += _columns(title, name, spell, rank, replays)
    times = tuple(seconds(each.seconds) for each in replays if each.seconds is not None)
    if times:
        columns.append(Column((device, "seconds"), times, 1))
    print_table(console, columns, groups=[each.trace for each in replays])


def place_columns(replays: Sequence[Replay], *, rank_of_memory: int) -> list[Column]:
    """What tells replays from each other."""
    return [
        Column(("", "trace"), tuple(Path(each.trace).stem for each in replays), 0, left=True),
        Column(("", "variant"), tuple(each.variant for each in replays), 0, left=True),
        Column(("window", "KiB"), tuple(str(each.read_ahead_kb) for each in replays), 0),
        Column(("memory", "MiB"), tuple(mib(each.memory_bytes) for each in replays), rank_of_memory),
    ]


def difference_columns(replays: Sequence[Replay]) -> list[Column]:
    """A row for each trace, a column for each variant and window: by how many per cent the model is off the guest.

    In bytes, requests and major faults. NoResult if no guest was measured.
    """
    found = {
        (each.trace, (each.variant, each.read_ahead_kb)): _all_off_by(each.predicted, each.recorded)
        for each in replays
        if each.recorded
    }
    if not found:
        raise NoResult("Nothing was measured that these traces could stand beside.")
    traces = dict.fromkeys(trace for trace, _ in found)
    heads = dict.fromkeys(head for _, head in found)
    return [
        Column(("", "trace"), tuple(Path(trace).stem for trace in traces), 0, left=True),
        *(
            Column(
                ("", f"{variant}, {window}"), tuple(found.get((trace, (variant, window)), "") for trace in traces), 0
            )
            for variant, window in heads
        ),
    ]


def _all_off_by(predicted: Figures, recorded: Figures) -> str:
    pairs = [(getattr(predicted, name), getattr(recorded, name)) for _, name, _, _ in _FIGURES]
    shares = (apart(one, other) for one, other in pairs)
    percents = (None if share is None else round(share * 100) for share in shares)
    return " / ".join("-" if each is None else f"{each:+d}" if each else "0" for each in percents)


def _columns(
    title: str, name: str, spell: Callable[[float], str], rank: int, replays: Sequence[Replay]
) -> Iterator[Column]:
    predicted = [getattr(each.predicted, name) for each in replays]
    recorded = [getattr(each.recorded, name) if each.recorded else None for each in replays]
    yield Column((title, "predicted"), tuple(spell(value) for value in predicted), rank)
    if any(value is not None for value in recorded):
        yield Column((title, "recorded"), tuple("-" if value is None else spell(value) for value in recorded), rank)
        pairs = zip(predicted, recorded, strict=True)
        shares = ("-" if other is None else off_by(apart(one, other)) for one, other in pairs)
        yield Column((title, "off by"), tuple(shares), rank)
